#include "base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>

namespace capgate {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Text, LowersAsciiLettersOnly) {
  EXPECT_EQ(to_lower("AbZ[@`{09"), "abz[@`{09");
  EXPECT_EQ(to_lower("\xc3\x84"), "\xc3\x84");
}

TEST(Text, TrimsEveryKindOfAsciiSpaceAtBothEnds) {
  EXPECT_EQ(trim(" \t\r\n\v\f a b \n"), "a b");
  EXPECT_EQ(trim("a"), "a");
  EXPECT_EQ(trim(" \t "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, SplitsKeepingEmptyParts) {
  EXPECT_EQ(split("a:b:c", ':'), (Parts{"a", "b", "c"}));
  EXPECT_EQ(split(":a::", ':'), (Parts{"", "a", "", ""}));
  EXPECT_EQ(split("", ':'), Parts{""});
}

TEST(Text, JoinsKeepingEmptyParts) {
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(join(std::vector<std::string>{"", "a", "", "b", ""}, ","), ",a,,b,");
}

TEST(Text, JoinUndoesSplit) {
  EXPECT_TRUE(rc::check("join(split(text)) == text", [] {
    const auto text = *rc::gen::container<std::string>(rc::gen::element('a', ':', 'b'));
    std::vector<std::string> parts;
    for (const std::string_view part : split(text, ':')) {
      parts.emplace_back(part);
    }
    RC_ASSERT(join(parts, ":") == text);
  }));
}

TEST(ParseDecimal, TakesDigitsUpToTheLargestNumber) {
  EXPECT_EQ(parse_decimal("0"), 0U);
  EXPECT_EQ(parse_decimal("65535"), 65535U);
  EXPECT_EQ(parse_decimal("9999999999999999999"), 9999999999999999999U);
  EXPECT_EQ(parse_decimal("18446744073709551615"), 18446744073709551615U);
}

TEST(ParseDecimal, RefusesEverythingElse) {
  for (const std::string_view text :
       {"", "00", "01", "-1", "+1", " 1", "1 ", "1a", "0x1", "1.0", "1e3", "18446744073709551616",
        "99999999999999999999", "100000000000000000000", "\xd9\xa1"}) {
    EXPECT_EQ(parse_decimal(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_decimal(std::string_view("1\0", 2)), std::nullopt);
}

struct Utf8Case {
  std::string_view bytes;
  std::size_t length;
};

TEST(Utf8, KnowsTheLengthOfEveryValidForm) {
  constexpr Utf8Case cases[] = {
      {"a", 1},
      {"\x7f", 1},
      {"\xc2\x80", 2},
      {"\xdf\xbf", 2},
      {"\xe0\xa0\x80", 3},
      {"\xed\x9f\xbf", 3},
      {"\xee\x80\x80", 3},
      {"\xef\xbf\xbf", 3},
      {"\xf0\x90\x80\x80", 4},
      {"\xf4\x8f\xbf\xbf", 4},
      {"\xc3\xa9 and more", 2},
  };
  for (const auto& [bytes, length] : cases) {
    EXPECT_EQ(utf8_length(bytes), length) << escape_for_terminal(bytes);
  }
}

TEST(Utf8, RefusesOverlongSurrogateLargeAndTruncatedForms) {
  for (const std::string_view bytes : {"",
                                       "\x80",
                                       "\xbf",
                                       "\xc0\xaf",
                                       "\xc1\xbf",
                                       "\xe0\x80\xaf",
                                       "\xe0\x9f\xbf",
                                       "\xed\xa0\x80",
                                       "\xed\xbf\xbf",
                                       "\xf0\x80\x80\xaf",
                                       "\xf0\x8f\xbf\xbf",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xff",
                                       "\xc3",
                                       "\xc3(",
                                       "\xe2\x82",
                                       "\xe2(\xac",
                                       "\xf0\x9f\x98",
                                       "\xf0\x9f(\x80"}) {
    EXPECT_EQ(utf8_length(bytes), 0U) << escape_for_terminal(bytes);
  }
}

TEST(Utf8, FindsTheFirstInvalidByteWhereverItStands) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("plain ASCII that is longer than eight bytes"), std::nullopt);
  for (std::size_t at = 0; at < 40; ++at) {
    std::string text(40, 'a');
    text[at] = '\xff';
    EXPECT_EQ(find_invalid_utf8(text), at);
    text.replace(at, 1, "\xc3\xa9");
    EXPECT_EQ(find_invalid_utf8(text), std::nullopt) << at;
  }
}

TEST(Utf8, WhatIsAppendedIsValidAndHasItsLength) {
  EXPECT_TRUE(rc::check("append_utf8 gives one valid sequence", [] {
    auto c = *rc::gen::inRange<std::uint32_t>(0, 0x110000);
    if (c >= 0xd800 && c <= 0xdfff) c = 0xd7ff;
    std::string text;
    append_utf8(text, c);
    RC_ASSERT(utf8_length(text) == text.size());
    RC_ASSERT(text.size() == (c < 0x80 ? 1U : c < 0x800 ? 2U : c < 0x10000 ? 3U : 4U));
  }));
}

struct Escape {
  std::string_view text;
  std::string_view shown;
};

TEST(EscapeForTerminal, ShowsWhatIsThere) {
  constexpr Escape cases[] = {
      {"plain \\ \"text\"", "plain \\ \"text\""},
      {"\xc3\xa9 \xf0\x9f\x98\x80", "\xc3\xa9 \xf0\x9f\x98\x80"},
      {"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"},
      {"a\tb\nc\rd\x7f", "a\\x09b\\x0ac\\x0dd\\x7f"},
      {"\xc2\x9b"
       "31m",
       "\\u{009b}31m"},  // C1: CSI
      {"\xe2\x80\xae"
       "gpj.exe",
       "\\u{202e}gpj.exe"},  // right-to-left override
      {"\xe2\x81\xa6"
       "a\xe2\x81\xa9",
       "\\u{2066}a\\u{2069}"},  // isolates
      {"a\xe2\x80\x8b"
       "b",
       "a\\u{200b}b"},  // zero-width space
      {"a\xc2\xad"
       "b",
       "a\\u{00ad}b"},  // soft hyphen
      {"a\xef\xbb\xbf", "a\\u{feff}"},
      {"a\xe2\x80\xa8"
       "b",
       "a\\u{2028}b"},
      {"a\xef\xb8\x80", "a\\u{fe00}"},       // variation selector
      {"a\xf3\xa0\x84\x80", "a\\u{e0100}"},  // one of those that smuggle bytes
      {"a\xf3\xa0\x81\x81", "a\\u{e0041}"},  // tag character
      {"\xe3\x85\xa4", "\\u{3164}"},         // a letter without ink
      {"\xff\xc0\xaf", "\\xff\\xc0\\xaf"},
      {"\xe2\x82", "\\xe2\\x82"},
  };
  for (const auto& [text, shown] : cases) {
    EXPECT_EQ(escape_for_terminal(text), shown);
  }
  EXPECT_EQ(escape_for_terminal(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(EscapeForTerminal, NeverLeavesAControlCharacterOrInvalidUtf8) {
  EXPECT_TRUE(rc::check("the output is printable", [](const std::string& bytes) {
    const std::string shown = escape_for_terminal(bytes);
    RC_ASSERT(!find_invalid_utf8(shown));
    for (const char c : shown) {
      RC_ASSERT(!is_control(c));
    }
  }));
}

TEST(Quoted, CutsALongTextBetweenCharacters) {
  EXPECT_EQ(capgate::quoted("a\n"), "\"a\\x0a\"");
  EXPECT_EQ(capgate::quoted(std::string(80, 'a')), '"' + std::string(80, 'a') + '"');
  EXPECT_EQ(capgate::quoted(std::string(81, 'a')), '"' + std::string(80, 'a') + "...\"");
  EXPECT_EQ(capgate::quoted(std::string(79, 'a') + "\xc3\xa9"),
            '"' + std::string(79, 'a') + "...\"");
}

TEST(Closest, FindsALikelySlip) {
  constexpr std::array<std::string_view, 4> words = {"capabilities", "name", "tools", "fs"};
  EXPECT_EQ(closest("capabilites", words), "capabilities");
  EXPECT_EQ(closest("CAPABILITIES", words), "capabilities");
  EXPECT_EQ(closest("tolos", words), "tools");
  EXPECT_EQ(closest("naem", words), "name");
  EXPECT_EQ(closest("sf", words), "fs");
}

TEST(Closest, IsSilentWhenNothingIsClose) {
  constexpr std::array<std::string_view, 3> words = {"capabilities", "name", "x"};
  EXPECT_EQ(closest("description", words), std::nullopt);
  EXPECT_EQ(closest("", words), std::nullopt);
  EXPECT_EQ(closest("y", words), std::nullopt) << "one letter is not a slip of another";
  EXPECT_EQ(closest(std::string(65, 'n'), words), std::nullopt);
  EXPECT_EQ(closest("name", {}), std::nullopt);
}

TEST(Closest, PrefersTheNearestThenTheFirst) {
  constexpr std::array<std::string_view, 3> words = {"reads", "read", "real"};
  EXPECT_EQ(closest("read", words), "read");
  EXPECT_EQ(closest("reax", words), "read");
}

}  // namespace
}  // namespace capgate
