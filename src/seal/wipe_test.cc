// Values of secrets do not stay behind in memory that is freed.
#include <gtest/gtest.h>

#include "base/digest.h"
#include "seal/matcher.h"
#include "seal/spelling.h"
#include "seal/swap.h"
#include "support/freed_memory.h"
#include "support/http1_stage.h"
#include "support/mapping_flags.h"

namespace capgate::seal {
namespace {

using core::SecretPlace;
using secrets::Secret;
using support::FreedMemory;
using Kind = SecretPlace::Kind;

// Only unreserved characters: it is the same in every spelling but base64.
constexpr std::string_view value = "ghp-the-real-value-of-the-token-0001";
constexpr std::string_view placeholder = "ghp-0123456789abcdef-placeholder-001";
constexpr std::string_view other_placeholder = "ghp-fedcba9876543210-placeholder-002";

class WipeTest : public testing::Test {
 protected:
  [[nodiscard]] Keyring keyring(Kind kind) const {
    const auto key = [&](std::string_view name, std::string_view stands_for) {
      return Key{.name = std::string(name),
                 .placeholder = std::string(stands_for),
                 .as = {.kind = kind},
                 .is_bound_here = true,
                 .value = &secret_};
    };
    return Keyring({key("ONE", placeholder), key("TWO", other_placeholder)});
  }
  static std::string both() {
    return std::string(placeholder) + ":" + std::string(other_placeholder);
  }

  const Secret secret_ = *Secret::make(value);
};

// The control: the hook sees what is not wiped.
TEST_F(WipeTest, WhatIsFreedIsSeen) {
  const FreedMemory freed(value);
  {
    const std::string copy(value);
  }
  EXPECT_EQ(freed.unwiped(), 1U);
}

TEST_F(WipeTest, HeadsLeaveNothing) {
  const struct {
    Kind kind;
    Request request;
  } cases[] = {
      {Kind::header, {.method = "GET", .target = "/", .fields = {{"Authorization", both()}}}},
      {Kind::basic,
       {.method = "GET", .target = "/", .fields = {{"Authorization", "Basic " + base64(both())}}}},
      {Kind::query, {.method = "GET", .target = "/?" + both()}},
      {Kind::path, {.method = "GET", .target = "/" + both()}},
  };
  for (const auto& [kind, sent] : cases) {
    const Keyring keys = keyring(kind);
    Request request = sent;
    const FreedMemory freed(value);
    const auto swapped = keys.swap(request);
    ASSERT_TRUE(swapped) << swapped.error().text;
    EXPECT_EQ(swapped->size(), 2U);
    wipe_secrets(request);
    request = {};
    EXPECT_EQ(freed.unwiped(), 0U) << static_cast<int>(kind);
  }
}

TEST_F(WipeTest, BasicCredentialsLeaveNothing) {
  const Keyring keys = keyring(Kind::basic);
  const std::string with_first = std::string(placeholder) + ":" + std::string(value);
  const std::string encoded = base64(with_first);
  Request request{
      .method = "GET", .target = "/", .fields = {{"Authorization", "Basic " + base64(both())}}};
  const FreedMemory freed(encoded);
  ASSERT_TRUE(keys.swap(request));
  wipe_secrets(request);
  request = {};
  EXPECT_EQ(freed.unwiped(), 0U);
}

TEST_F(WipeTest, BodiesLeaveNothing) {
  const Keyring keys = keyring(Kind::body);
  std::string body;
  for (int i = 0; i < 100; ++i) body += both();
  const FreedMemory freed(value);
  {
    BodySwap swap = keys.request_body({.method = "POST", .target = "/"});
    const auto passed = swap.pass(body);
    ASSERT_TRUE(passed);
    EXPECT_TRUE(passed->contains(value));
  }
  EXPECT_EQ(freed.unwiped(), 0U);
}

TEST_F(WipeTest, AnswersLeaveNothing) {
  const Keyring keys = keyring(Kind::header);
  const FreedMemory freed(value);
  {
    Scrub scrub = keys.response_body();
    const std::string_view first = scrub.pass(value.substr(0, 20));
    EXPECT_EQ(first, "");
    (void)scrub.pass(value.substr(20));
    EXPECT_EQ(scrub.found(), 1U);
  }
  EXPECT_EQ(freed.unwiped(), 0U);
}

TEST_F(WipeTest, ABeginningOfAValueIsNotLeftBehind) {
  const Keyring keys = keyring(Kind::header);
  const std::string_view beginning = value.substr(0, 30);
  const FreedMemory freed(beginning);
  {
    Scrub scrub = keys.response_body();
    EXPECT_EQ(scrub.pass(beginning), "");
  }
  EXPECT_EQ(freed.unwiped(), 0U);
}

// What was held grows together with what comes, in memory that grows, too.
TEST_F(WipeTest, AnswersThatGrowLeaveNothing) {
  const Keyring keys = keyring(Kind::header);
  const FreedMemory freed(value.substr(0, 30));
  {
    Scrub scrub = keys.response_body();
    std::string rest(value.substr(20));
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(scrub.pass(value.substr(0, 20)), "");
      (void)scrub.pass(rest);
      rest += std::string(rest.size(), '.');
    }
    EXPECT_EQ(scrub.found(), 12U);
  }
  EXPECT_EQ(freed.unwiped(), 0U);
}

TEST_F(WipeTest, AMatcherLeavesNothing) {
  const FreedMemory freed(value);
  {
    const Matcher matcher({.patterns = {value}});
  }
  EXPECT_EQ(freed.unwiped(), 0U);
}

TEST_F(WipeTest, ASecretMatcherLiesInLockedMemory) {
  const Matcher secret({.patterns = {value}, .memory = Matcher::Memory::locked});
  EXPECT_TRUE(support::flags_of(secret.pattern(0).data()).contains(" lo "));
  const Matcher ordinary({.patterns = {value}});
  EXPECT_FALSE(support::flags_of(ordinary.pattern(0).data()).contains(" lo "));
}

TEST_F(WipeTest, TextThatGrowsLeavesNothing) {
  const FreedMemory freed(value);
  std::string text;
  text.reserve(value.size());
  append_wiping(text, value);
  for (int i = 0; i < 100; ++i) append_wiping(text, "and more of it");
  secrets::wipe(text);
  EXPECT_EQ(freed.unwiped(), 0U);
}

// Through the relay: the head, a body whose length changes, a body in chunks.
class RelayWipeTest : public support::Http1Test {
 protected:
  // Into memory that is never freed, until `end` has come.
  void hear_at_origin(std::string_view end) {
    std::size_t size = 0;
    while (!std::string_view(heard_, size).ends_with(end)) {
      const ssize_t got = ::recv(origin.get(), heard_ + size, sizeof(heard_) - size, 0);
      ASSERT_GT(got, 0);
      size += static_cast<std::size_t>(got);
    }
    EXPECT_TRUE(std::string_view(heard_, size).contains(support::secret_value));
  }
  void expect_nothing_stays(const std::string& request, std::string_view end) {
    const FreedMemory freed(support::secret_value);
    play([&] {
      support::send_text(client, request);
      hear_at_origin(end);
      expect_answers(support::ok);
      client = sys::Fd();
      (void)wait_for_end();
    });
    EXPECT_EQ(freed.unwiped(), 0U);
  }
  static std::string post(std::string_view fields, std::string_view body) {
    return "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n" + std::string(body);
  }

  char heard_[200'000] = {};
};

TEST_F(RelayWipeTest, OfAHead) {
  const std::string field = "Authorization: Bearer " + std::string(support::placeholder) + "\r\n";
  expect_nothing_stays("GET / HTTP/1.1\r\nHost: a\r\n" + field + "\r\n", "\r\n\r\n");
}

TEST_F(RelayWipeTest, OfAShortBody) {
  seal_in(Kind::body, support::secret_value);
  const std::string body = std::string(support::placeholder) + "end";
  expect_nothing_stays(post("Content-Length: " + std::to_string(body.size()) + "\r\n", body),
                       "end");
}

TEST_F(RelayWipeTest, OfABodyInChunks) {
  seal_in(Kind::body, support::secret_value);
  std::string body;
  for (int i = 0; i < 1000; ++i) body += support::placeholder;
  const std::string chunk = "9470\r\n" + body + "\r\n0\r\n\r\n";  // 38000 bytes
  ASSERT_EQ(body.size(), 0x9470U);
  expect_nothing_stays(post("Transfer-Encoding: chunked\r\n", chunk), "0\r\n\r\n");
}

}  // namespace
}  // namespace capgate::seal
