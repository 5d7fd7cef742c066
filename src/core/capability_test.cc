// Round trips between capabilities and their strings, and what any bytes at all may give.
#include "core/capability.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <string_view>

#include "core/grammar.h"
#include "support/generators.h"

namespace capgate::core {
namespace {

RC_GTEST_PROP(Capability, PrintsAndParsesBack, ()) {
  const Capability capability = *support::capability();
  RC_TAG(std::string(kind_name(capability)));
  const auto again = parse_capability(print(capability), {});
  if (!again) RC_FAIL(again.error().message);
  RC_ASSERT(again->size() == 1U);
  RC_ASSERT(again->front() == capability);
}

// Words of the grammar in any order: far more often nearly right than random bytes are.
rc::Gen<std::string> word_soup() {
  return rc::gen::exec([] {
    std::string text = support::pick({"", "fs:read:", "fs:write:/a",
                                      "net:connect:", "net:listen:", "exec:spawn:", "env:inject:T",
                                      "ipc:connect:", "clock:", "limit:memory:", "assert:x:"});
    for (const std::string& word :
         *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
             ":", "?", "&", "=", "\"", "\\", "/", "*", "**", ".", "..", "[", "]", "${A}", "${", "a",
             "1", "0", " ", "\n", "unsafe=true", "to=", "as=", "paths=", "localhost", ":443", "::1",
             "unix:", "x11", "\xc3\xa9", "\xff", ",", "%", "K", "$b", "system"))) {
      text += word;
    }
    return text;
  });
}

void check_any_text(const std::string& text) {
  const Bindings bindings = {{.name = "A", .values = {"/a b", "x"}}};
  const auto parsed = parse_capability(text, bindings);
  if (!parsed) {
    const Span where = parsed.error().where;
    RC_ASSERT(where.begin <= where.end);
    RC_ASSERT(where.end <= text.size());
    RC_ASSERT(!parsed.error().message.empty());
    RC_ASSERT(!parsed.error().help.empty());
    return;
  }
  RC_ASSERT(!parsed->empty());
  for (const Capability& capability : *parsed) {
    const auto again = parse_capability(print(capability), {});
    if (!again) RC_FAIL(print(capability) + ": " + again.error().message);
    RC_ASSERT(again->front() == capability);
    RC_ASSERT(print(again->front()) == print(capability));
  }
}

RC_GTEST_PROP(Capability, AnyWordsGiveAFixpointOrAPlaceInside, ()) {
  for (int i = 0; i < 20; ++i) check_any_text(*word_soup());
}

RC_GTEST_PROP(Capability, AnyBytesGiveAFixpointOrAPlaceInside, ()) {
  const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  check_any_text(bytes);
  check_any_text("fs:read:/" + bytes);
  check_any_text("net:connect:" + bytes);
  check_any_text("assert:x:" + bytes);
}

// One byte of a good string replaced by another one.
RC_GTEST_PROP(Capability, AChangedByteGivesAFixpointOrAPlaceInside, ()) {
  std::string text = print(*support::capability());
  const auto at = *rc::gen::inRange(std::size_t{0}, text.size());
  text[at] = *rc::gen::elementOf(std::string(":?&=\"\\/*.[]${} \n\0a1", 19));
  check_any_text(text);
}

TEST(Capability, HasAKindName) {
  const std::pair<std::string_view, std::string_view> table[] = {
      {"fs:read:/a", "fs"},      {"net:connect:a", "net"},  {"net:listen:1", "net"},
      {"exec:spawn:a", "exec"},  {"env:read:A", "env"},     {"ipc:connect:x11", "ipc"},
      {"clock:system", "clock"}, {"limit:pids:1", "limit"}, {"assert:a", "assert"},
  };
  for (const auto& [text, kind] : table) {
    const auto parsed = parse_capability(text, {});
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(kind_name(parsed->front()), kind);
    EXPECT_EQ(print(parsed->front()), text);
  }
}

TEST(Capability, PrintsLimitsInTheLargestExactUnit) {
  using enum LimitCapability::Kind;
  EXPECT_EQ(print_limit_value({.kind = memory, .value = 1536}), "1536");
  EXPECT_EQ(print_limit_value({.kind = memory, .value = 1536 << 10}), "1536K");
  EXPECT_EQ(print_limit_value({.kind = disk, .value = 1ULL << 40}), "1024G");
  EXPECT_EQ(print_limit_value({.kind = time, .value = 3600}), "1h");
  EXPECT_EQ(print_limit_value({.kind = time, .value = 3660}), "61m");
  EXPECT_EQ(print_limit_value({.kind = cpu, .value = 60}), "60%");
  EXPECT_EQ(print_limit_value({.kind = pids, .value = 1024}), "1024");
}

}  // namespace
}  // namespace capgate::core
