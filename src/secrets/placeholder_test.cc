#include "secrets/placeholder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace capgate::secrets {
namespace {

using Random = std::vector<std::uint8_t>;

Random random_for(std::string_view value, std::uint8_t seed = 7) {
  Random out(64 + value.size());
  std::uint32_t state = seed;
  for (auto& byte : out) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::uint8_t>(state >> 24U);
  }
  return out;
}

std::string made(std::string_view value) { return make_placeholder(value, random_for(value)); }

bool is_made_of(std::string_view text, std::string_view alphabet) {
  return std::ranges::all_of(text, [&](char c) { return alphabet.contains(c); });
}

TEST(Placeholder, KeepsAPublicPrefix) {
  const std::string value = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
  const std::string out = made(value);
  EXPECT_EQ(out.size(), value.size());
  EXPECT_TRUE(out.starts_with("ghp_")) << out;
  EXPECT_TRUE(std::ranges::all_of(out.substr(4), is_alnum)) << out;
  EXPECT_NE(out, value);
  EXPECT_TRUE(made("sk-ant-REDACTED").starts_with("sk-ant-"));
  EXPECT_TRUE(made("github_pat_11ABCDEFG0abcdefghij_k").starts_with("github_pat_"));
}

TEST(Placeholder, KeepsNoOtherBeginning) {
  EXPECT_FALSE(made("acme_0123456789abcdefghij").starts_with("acme_"));
  // Too little would be left to chance.
  EXPECT_FALSE(made("github_pat_1").starts_with("github_pat_"));
}

TEST(Placeholder, IsHexadecimalWhereTheValueIs) {
  EXPECT_TRUE(is_made_of(made("0123456789abcdef0123456789abcdef"), "0123456789abcdef"));
  EXPECT_TRUE(is_made_of(made("0123456789ABCDEF0123456789ABCDEF"), "0123456789ABCDEF"));
  EXPECT_FALSE(is_made_of(made("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"), "0123456789abcdef"));
}

RC_GTEST_PROP(Placeholder, HasTheValuesLengthAndPlainCharacters, (const std::string& value)) {
  const Random random =
      *rc::gen::container<Random>(value.size() + 64, rc::gen::arbitrary<std::uint8_t>());
  const std::string out = make_placeholder(value, random);
  RC_ASSERT(out.size() == std::max(value.size(), shortest_placeholder));
  RC_ASSERT(std::ranges::all_of(
      out, [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; }));
}

// Two values that differ in nothing but their characters get the same placeholder.
RC_GTEST_PROP(Placeholder, TellsNothingOfTheCharacters, ()) {
  const auto letters =
      rc::gen::container<std::string>(40, rc::gen::elementOf(std::string("ghijkl")));
  const std::string a = *letters;
  const std::string b = *letters;
  const Random random = random_for(a);
  RC_ASSERT(make_placeholder(a, random) == make_placeholder(b, random));
}

RC_GTEST_PROP(Placeholder, EveryRandomByteCounts, (std::uint8_t one, std::uint8_t other)) {
  RC_PRE(one % 62 != other % 62);
  const std::string value(30, 'z');
  Random random(94, one);
  const std::string first = make_placeholder(value, random);
  const auto at = *rc::gen::inRange<std::size_t>(0, value.size());
  random[at] = other;
  const std::string second = make_placeholder(value, random);
  RC_ASSERT(first[at] != second[at]);
}

}  // namespace
}  // namespace capgate::secrets
