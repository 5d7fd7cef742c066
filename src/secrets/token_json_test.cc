#include "secrets/token_json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "text/json_write.h"

namespace capgate::secrets {
namespace {

constexpr std::int64_t now = 1'794'000'000;

std::expected<Token, std::string> read(std::string_view text) {
  return read_token(*Secret::make(text), now);
}

TEST(TokenJson, BothWaysToSayWhenItExpires) {
  const auto at = read(R"({"value": "abc", "expires": "2026-11-15T12:00:00Z"})");
  ASSERT_TRUE(at) << at.error();
  EXPECT_EQ(at->value.view(), "abc");
  EXPECT_EQ(at->expires, 1'794'744'000);
  const auto in = read("\n {\"expires_in\" : 3600 , \"value\":\"abc\"}\n");
  ASSERT_TRUE(in) << in.error();
  EXPECT_EQ(in->expires, now + 3600);
}

TEST(TokenJson, OtherMembersAreSkipped) {
  const auto token =
      read(R"({"a": [1, {"value": "no"}, []], "value": "yes", "b": {}, "n": null, "expires_in": 5,)"
           R"( "c": -1.5e3})");
  ASSERT_TRUE(token) << token.error();
  EXPECT_EQ(token->value.view(), "yes");
}

TEST(TokenJson, EscapesAreTakenOut) {
  const auto token = read(R"({"value": "a\"\\\/\u00e9\ud83d\ude00", "expires_in": 5})");
  ASSERT_TRUE(token) << token.error();
  EXPECT_EQ(token->value.view(), "a\"\\/é😀");
}

TEST(TokenJson, WhatIsNotOfThisShapeIsRefusedWithoutAWordOfIt) {
  for (const char* text :
       {"",
        "{",
        "{}",
        "abc-secret",
        R"("abc-secret")",
        R"({"value": "abc-secret"})",
        R"({"expires_in": 5})",
        R"({"value": 5, "expires_in": 5})",
        R"({"value": "abc-secret", "expires_in": "5"})",
        R"({"value": "abc-secret", "expires_in": -5})",
        R"({"value": "abc-secret", "expires_in": 99999999999999})",
        R"({"value": "abc-secret", "expires": "tomorrow"})",
        R"({"value": "abc-secret", "expires": 1794744000})",
        R"({"value": "abc-secret", "value": "b", "expires_in": 5})",
        R"({"value": "abc-secret", "expires_in": 5, "expires": "2026-11-15T12:00:00Z"})",
        R"({"value": "abc-secret", "expires_in": 5} x)",
        R"({"value": "abc-secret", "expires_in": 5,})",
        R"({"value": "abc-secret\ud83d", "expires_in": 5})",
        R"({"value": "abc-secret\x", "expires_in": 5})",
        R"({"value": "abc-secret)",
        R"({"value": "abc-secret\)",
        R"({"value": "abc-secret\u00)"}) {
    const auto token = read(text);
    ASSERT_FALSE(token) << text;
    EXPECT_FALSE(token.error().contains("abc-secret"));
  }
}

TEST(TokenJson, DeepNestingEnds) { EXPECT_FALSE(read("{\"a\":" + std::string(5000, '['))); }

RC_GTEST_PROP(TokenJson, WhatOurWriterWritesIsRead, ()) {
  const auto value = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object().key("value").string(value).key("expires_in").number(std::uint64_t{60});
  json.end_object();
  const auto token = read(std::move(json).take());
  RC_ASSERT(token.has_value());
  RC_ASSERT(token->value.view() == value);
}

RC_GTEST_PROP(TokenJson, NoBytesBreakIt, (const std::string& bytes)) {
  (void)read(R"({"value": ")" + bytes);
  (void)read("{" + bytes);
}

TEST(ParseTime, Offsets) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parse_time("1970-01-01T02:00:00.123456+02:00"), 0);
  EXPECT_EQ(parse_time("1969-12-31 19:00:00-05:00"), 0);
  EXPECT_EQ(parse_time("2024-02-29T00:00:00Z"), 1'709'164'800);
}

TEST(ParseTime, WhatIsNoTime) {
  for (const char* text :
       {"", "2026-11-15", "2026-11-15T12:00:00", "2026-02-29T12:00:00Z", "2026-11-15T24:00:00Z",
        "2026-11-15T12:60:00Z", "2026-11-15T12:00:00.Z", "2026-11-15T12:00:00+2",
        "2026-11-15T12:00:00+24:00", "2026-11-15T12:00:00Zx"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

}  // namespace
}  // namespace capgate::secrets
