#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "seal/spelling.h"
#include "seal/swap.h"
#include "support/cuts.h"

namespace capgate::seal {
namespace {

using Kind = core::SecretPlace::Kind;
using secrets::Secret;

constexpr std::string_view placeholder = "aabaabaabaabaabaabac";  // overlaps itself
constexpr std::string_view value = "real \"value\"/";

class SwapBody : public testing::Test {
 protected:
  Key key(Kind kind = Kind::body) const {
    return {.name = "TOKEN",
            .placeholder = std::string(placeholder),
            .as = {.kind = kind},
            .is_bound_here = true,
            .value = &secret_};
  }
  static Request post(const std::string& type) {
    return {.method = "POST", .target = "/", .fields = {{.name = "Content-Type", .value = type}}};
  }
  static std::expected<std::string, Misuse> whole(BodySwap body, std::string_view text) {
    auto out = body.push(text);
    if (!out) return out;
    auto rest = body.finish();
    if (!rest) return rest;
    return *out + *rest;
  }

  const Secret secret_ = *Secret::make(value);
  const std::string ph_{placeholder};
};

TEST_F(SwapBody, WritesTheValueAsTheBodyNeedsIt) {
  const Keyring keys({key()});
  const auto swapped = [&](const std::string& type) {
    return *whole(keys.request_body(post(type)), "[" + ph_ + "," + ph_ + "]");
  };
  const std::string raw = "[real \"value\"/,real \"value\"/]";
  const std::string json = R"([real \"value\"/,real \"value\"/])";
  const std::string form = "[real%20%22value%22%2F,real%20%22value%22%2F]";
  EXPECT_EQ(swapped("application/json"), json);
  EXPECT_EQ(swapped("Application/JSON ; charset=utf-8"), json);
  EXPECT_EQ(swapped("application/vnd.api+json"), json);
  EXPECT_EQ(swapped("application/x-ndjson"), json);
  EXPECT_EQ(swapped("application/x-www-form-urlencoded"), form);
  EXPECT_EQ(swapped("text/plain"), raw);
  EXPECT_EQ(swapped(""), raw);
  EXPECT_EQ(*whole(keys.request_body({}), ph_), value);
}

TEST_F(SwapBody, RefusesWhatMayNotStandThere) {
  const auto reason = [&](const Key& key) {
    const auto out = whole(Keyring({key}).request_body({}), "x" + ph_);
    EXPECT_FALSE(out);
    EXPECT_FALSE(out.error().text.contains(value));
    return std::string(out.error().reason);
  };
  for (const Kind kind : {Kind::header, Kind::basic, Kind::query, Kind::path}) {
    EXPECT_EQ(reason(key(kind)), "other-place");
  }
  Key elsewhere = key();
  elsewhere.is_bound_here = false;
  EXPECT_EQ(reason(elsewhere), "other-host");
  Key without = key();
  without.value = nullptr;
  EXPECT_EQ(reason(without), "not-renewed");
}

TEST_F(SwapBody, TellsWhetherTheLengthMayChange) {
  EXPECT_TRUE(Keyring({key()}).request_body({}).may_change_length());
  EXPECT_FALSE(Keyring({key(Kind::header)}).request_body({}).may_change_length());
  const Secret same = *Secret::make("0123456789012345678\"");
  Key equal = key();
  equal.value = &same;
  EXPECT_FALSE(Keyring({equal}).request_body({}).may_change_length());
  EXPECT_TRUE(Keyring({equal}).request_body(post("text/json")).may_change_length());
}

TEST_F(SwapBody, KeepsToTheLengthThatItTold) {
  Secret renewed = *Secret::make("01234567890123456789");
  Key changing = key();
  changing.value = &renewed;
  BodySwap body = Keyring({changing}).request_body({});
  ASSERT_FALSE(body.may_change_length());
  EXPECT_EQ(*body.push(ph_), "01234567890123456789");
  renewed = *Secret::make("98765432109876543210");
  EXPECT_EQ(*body.push(ph_), "98765432109876543210");
  renewed = *Secret::make("longer than that which was before");
  const auto refused = body.push(ph_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "not-renewed");
}

TEST_F(SwapBody, TellsWhatWasUsed) {
  BodySwap body = Keyring({key()}).request_body({});
  EXPECT_TRUE(body.push("nothing")->size() > 0);
  EXPECT_TRUE(body.used().empty());
  EXPECT_TRUE(body.push(ph_ + ph_).has_value());
  EXPECT_EQ(body.used(), std::vector<std::string>{"TOKEN"});
}

TEST_F(SwapBody, GivesWhatCameWithoutACopy) {
  BodySwap body = Keyring({key()}).request_body({});
  const std::string text = "nothing in it";
  EXPECT_EQ(body.pass(text)->data(), text.data());
}

TEST_F(SwapBody, HoldsOnlyWhatMayBecomeAPlaceholder) {
  BodySwap body = Keyring({key()}).request_body({});
  EXPECT_EQ(*body.push("xaab"), "x");
  EXPECT_EQ(*body.push("x"), "aabx");
  EXPECT_EQ(*body.push(ph_.substr(0, 19)), "");
  EXPECT_EQ(*body.push("abac"), std::string("aab") + std::string(value));
}

TEST_F(SwapBody, PrefersTheLongerPlaceholder) {
  Key around = key(Kind::header);
  around.placeholder = "xx" + ph_ + "yy";
  BodySwap body = Keyring({key(), around}).request_body({});
  EXPECT_EQ(*body.push("-xx" + ph_ + "y"), "-");
  EXPECT_EQ(*body.push("z"), "xx" + std::string(value) + "yz");
  EXPECT_EQ(*body.push("xx" + ph_), "");
  EXPECT_EQ(body.push("yy").error().reason, "other-place");
}

// Text in which placeholders and parts of them are likely.
std::string any_text() {
  const std::string whole(placeholder);
  const auto pieces =
      *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::vector<std::string>{
          whole, "a", "b", "aab", "ac", whole.substr(0, 12), whole.substr(3), "other"}));
  std::string out;
  for (const std::string& piece : pieces) out += piece;
  return out;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

RC_GTEST_FIXTURE_PROP(SwapBody, IsTheSameForAllCuts, ()) {
  const std::string text = any_text();
  BodySwap body = Keyring({key()}).request_body(post("application/json"));
  std::string out;
  for (const std::string& part : support::any_cuts(text)) out += *body.push(part);
  out += *body.finish();
  RC_ASSERT(out == replaced(text, placeholder, json_escaped(value)));
}

RC_GTEST_FIXTURE_PROP(SwapBody, RefusesForAllCuts, ()) {
  const std::string text = any_text();
  BodySwap body = Keyring({key(Kind::header)}).request_body({});
  std::string out;
  bool is_refused = false;
  for (const std::string& part : support::any_cuts(text)) {
    const auto passed = body.push(part);
    is_refused = !passed;
    if (is_refused) break;
    out += *passed;
  }
  if (!is_refused) {
    const auto rest = body.finish();
    RC_ASSERT(rest.has_value());
    out += *rest;
  }
  RC_ASSERT(is_refused == text.contains(placeholder));
  RC_ASSERT(!out.contains(placeholder));
  RC_ASSERT(is_refused || out == text);
}

}  // namespace
}  // namespace capgate::seal
