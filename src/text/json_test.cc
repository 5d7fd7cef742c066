#include "text/json.h"

#include <gtest/gtest.h>

#include "support/shape.h"

namespace capgate::text {
namespace {

using std::string_literals::operator""s;

struct Case {
  std::string input;
  std::string_view expected;
};

void expect_all(std::span<const Case> cases) {
  for (const auto& [input, expected] : cases) {
    EXPECT_EQ(shape(parse_json(input)), expected) << escape_for_terminal(input);
  }
}

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(ParseJson, ReadsEveryKindOfValue) {
  const Case cases[] = {
      {"null", "null"},
      {"true", "true"},
      {"false", "false"},
      {"\"\"", "\"\""},
      {"[]", "[]"},
      {"{}", "{}"},
      {" \t\r\n[ 1 , 2 ]\n", "[1,2]"},
      {R"({"a": {"b": [true, null]}, "c": "d"})", R"({"a":{"b":[true,null]},"c":"d"})"},
      {"[\"\xc3\xa9\xf0\x9f\x98\x80\"]", "[\"\xc3\xa9\xf0\x9f\x98\x80\"]"},
      {"[\"\x7f\"]", "[\"\\x7f\"]"},
      {R"({"": 1})", R"({"":1})"},
  };
  expect_all(cases);
}

TEST(ParseJson, ReadsNumbersAsTheyAreWritten) {
  for (const std::string number : {"0", "-0", "7", "-10", "1234567890123456789012345", "0.5",
                                   "-1.25", "1e9", "1E+9", "1e-9", "0e0", "12.50e007"}) {
    EXPECT_EQ(shape(parse_json(number)), number);
    EXPECT_EQ(shape(parse_json("[" + number + " ]")), "[" + number + "]");
  }
}

TEST(ParseJson, RefusesMalformedNumbers) {
  const Case cases[] = {
      {"-", "DOC_SYNTAX 0-1"},          {"01", "DOC_SYNTAX 0-2"},
      {"-01", "DOC_SYNTAX 0-3"},        {"1.", "DOC_SYNTAX 0-2"},
      {"[1.x]", "DOC_SYNTAX 1-4"},      {"1e", "DOC_SYNTAX 0-2"},
      {"1e+", "DOC_SYNTAX 0-3"},        {"+1", "DOC_SYNTAX 0-1"},
      {".5", "DOC_SYNTAX 0-1"},         {"0x10", "DOC_SYNTAX 1-4"},
      {"1_000", "DOC_SYNTAX 1-5"},      {"NaN", "DOC_SYNTAX 0-1"},
      {"Infinity", "DOC_SYNTAX 0-1"},   {"-Infinity", "DOC_SYNTAX 0-2"},
      {"1.\xc3\xa9", "DOC_SYNTAX 0-4"},
  };
  expect_all(cases);
}

TEST(ParseJson, DecodesEscapes) {
  const Case cases[] = {
      {R"("\" \\ \/")", R"("" \ /")"},
      {R"("\b\f\n\r\t")", R"("\x08\x0c\x0a\x0d\x09")"},
      {R"("\u0041\u00e9\u20AC")", "\"A\xc3\xa9\xe2\x82\xac\""},
      {R"("\ud83d\ude00!")", "\"\xf0\x9f\x98\x80!\""},
      {R"("\uD800\uDC00\uDBFF\uDFFF")", "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\""},
      {R"("\u0000")", R"("\x00")"},
  };
  expect_all(cases);
}

TEST(ParseJson, RefusesUnknownEscapesAndUnpairedSurrogates) {
  const Case cases[] = {
      {R"("\x41")", "DOC_SYNTAX 1-3"},
      {R"("ab\'")", "DOC_SYNTAX 3-5"},
      {R"("\u12")", "DOC_SYNTAX 1-3"},
      {R"("\u12g4")", "DOC_SYNTAX 1-3"},
      {R"("\U0041")", "DOC_SYNTAX 1-3"},
      {"\"\\\xc3\xa9\"", "DOC_SYNTAX 1-4"},
      {R"("\)", "DOC_SYNTAX 1-2"},
      {R"("\u)", "DOC_SYNTAX 1-3"},
      {R"("\ud800")", "DOC_ENCODING 1-7"},
      {R"("\udc00")", "DOC_ENCODING 1-7"},
      {R"("\ud800x")", "DOC_ENCODING 1-7"},
      {R"("\ud800\n")", "DOC_ENCODING 1-7"},
      {R"("\ud800\u0041")", "DOC_ENCODING 1-7"},
      {R"("\ud800\ud800")", "DOC_ENCODING 1-7"},
      {R"("a\udc00\ud800")", "DOC_ENCODING 2-8"},
  };
  expect_all(cases);
}

TEST(ParseJson, RefusesControlCharactersInStrings) {
  for (char c = 0; c < 0x20; ++c) {
    if (c == '\n') continue;
    EXPECT_EQ(shape(parse_json("[\"a"s + c + "\"]")), "DOC_SYNTAX 3-4") << int{c};
    EXPECT_EQ(shape(parse_json("[\"\\n"s + c + "\"]")), "DOC_SYNTAX 4-5") << int{c};
  }
}

TEST(ParseJson, PointsAtTheStringThatALineBreakCuts) {
  const Case cases[] = {
      {"[\"ab\n]", "DOC_SYNTAX 1-4"},
      {"[\"\\tb\n]", "DOC_SYNTAX 1-5"},
      {"{\"a\n\": 1}", "DOC_SYNTAX 1-3"},
  };
  expect_all(cases);
}

TEST(ParseJson, RefusesMistakesOfShape) {
  const Case cases[] = {
      {"", "DOC_SYNTAX 0-0"},
      {" \n", "DOC_SYNTAX 2-2"},
      {"{", "DOC_SYNTAX 1-1"},
      {"[", "DOC_SYNTAX 1-1"},
      {"[1", "DOC_SYNTAX 2-2"},
      {"[1,", "DOC_SYNTAX 3-3"},
      {"{\"a\"", "DOC_SYNTAX 4-4"},
      {"{\"a\":", "DOC_SYNTAX 5-5"},
      {"{\"a\":1", "DOC_SYNTAX 6-6"},
      {"{\"a\":1,", "DOC_SYNTAX 7-7"},
      {"\"abc", "DOC_SYNTAX 0-4"},
      {"[\"abc]", "DOC_SYNTAX 1-6"},
      {"[1,]", "DOC_SYNTAX 2-3"},
      {"{\"a\":1 , }", "DOC_SYNTAX 7-8"},
      {"[1 2]", "DOC_SYNTAX 3-4"},
      {"[1\xc3\xa9]", "DOC_SYNTAX 2-4"},
      {"{\"a\":1 \"b\":2}", "DOC_SYNTAX 7-8"},
      {"{\"a\" 1}", "DOC_SYNTAX 5-6"},
      {"{\"a\"\xe2\x82\xac}", "DOC_SYNTAX 4-7"},
      {"{a: 1}", "DOC_SYNTAX 1-2"},
      {"{\xc3\xa9: 1}", "DOC_SYNTAX 1-3"},
      {"{1: 2}", "DOC_SYNTAX 1-2"},
      {"[,1]", "DOC_SYNTAX 1-2"},
      {"['a']", "DOC_SYNTAX 1-2"},
      {"[\xe2\x80\x9c"
       "a]",
       "DOC_SYNTAX 1-4"},
      {"[1] // no", "DOC_SYNTAX 4-9"},
      {"// no\n[1]", "DOC_SYNTAX 0-2"},
      {"[/* no */ 1]", "DOC_SYNTAX 1-3"},
      {"tru", "DOC_SYNTAX 0-1"},
      {"True", "DOC_SYNTAX 0-1"},
      {"nullx", "DOC_SYNTAX 4-5"},
      {"}", "DOC_SYNTAX 0-1"},
      {"[1}", "DOC_SYNTAX 2-3"},
  };
  expect_all(cases);
}

TEST(ParseJson, RefusesBytesAfterTheValue) {
  const Case cases[] = {
      {"{} {}", "DOC_SYNTAX 3-5"}, {"1 2", "DOC_SYNTAX 2-3"},  {"[]]", "DOC_SYNTAX 2-3"},
      {"{}\0"s, "DOC_SYNTAX 2-3"}, {"{}\f", "DOC_SYNTAX 2-3"},
  };
  expect_all(cases);
}

TEST(ParseJson, RefusesNulBytesEverywhere) {
  const Case cases[] = {
      {"\0"s, "DOC_SYNTAX 0-1"},         {"[\0]"s, "DOC_SYNTAX 1-2"},
      {"[1\0]"s, "DOC_SYNTAX 2-3"},      {"[1,\0"s, "DOC_SYNTAX 3-4"},
      {"{\0}"s, "DOC_SYNTAX 1-2"},       {"{\"a\"\0:1}"s, "DOC_SYNTAX 4-5"},
      {"{\"a\":\0}"s, "DOC_SYNTAX 5-6"},
  };
  expect_all(cases);
}

TEST(ParseJson, RefusesWhatIsNotUtf8) {
  const Case cases[] = {
      {"\xef\xbb\xbf{}", "DOC_ENCODING 0-3"}, {"[\"\xff\"]", "DOC_ENCODING 2-3"},
      {"[\"\xc0\xaf\"]", "DOC_ENCODING 2-3"}, {"[\"\xed\xa0\x80\"]", "DOC_ENCODING 2-3"},
      {"[1] \xc3", "DOC_ENCODING 4-5"},       {"\xff\xfe[\0]\0"s, "DOC_ENCODING 0-1"},
  };
  expect_all(cases);
}

TEST(ParseJson, RefusesMoreThan128Levels) {
  EXPECT_EQ(shape(parse_json(nested(128))), nested(128));
  EXPECT_EQ(shape(parse_json(nested(129))), "DOC_DEPTH 128-129");
  EXPECT_EQ(shape(parse_json(std::string(129, '['))), "DOC_DEPTH 128-129");
  EXPECT_EQ(shape(parse_json(std::string(128, '['))), "DOC_SYNTAX 128-128");
  EXPECT_EQ(shape(parse_json(std::string(1 << 20, '['))), "DOC_DEPTH 128-129");
  std::string objects;
  for (int i = 0; i < 129; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_EQ(shape(parse_json(objects)), "DOC_DEPTH 640-641");
}

TEST(ParseJson, AScalarIsNoLevel) {
  const std::string text = std::string(128, '[') + "1" + std::string(128, ']');
  EXPECT_EQ(shape(parse_json(text)), text);
}

TEST(ParseJson, RefusesMoreThan16MiB) {
  std::string text(largest_document, ' ');
  text[0] = '1';
  EXPECT_EQ(shape(parse_json(text)), "1");
  EXPECT_EQ(shape(parse_json(text + ' ')), "DOC_SIZE 0-0");
}

TEST(ParseJson, RefusesADuplicateKeyAtItsSecondPlace) {
  const Case cases[] = {
      {R"({"a":1,"a":1})", "DOC_DUPLICATE_KEY 7-10"},
      {R"({"a":1,"\u0061":2})", "DOC_DUPLICATE_KEY 7-15"},
      {R"({"\u0061":1,"a":2})", "DOC_DUPLICATE_KEY 12-15"},
      {R"({"":1,"":2})", "DOC_DUPLICATE_KEY 6-8"},
      {R"({"a":1,"A":1,"a ":1})", R"({"a":1,"A":1,"a ":1})"},
      {R"([{"a":1},{"a":1}])", R"([{"a":1},{"a":1}])"},
      {R"({"a":{"a":1}})", R"({"a":{"a":1}})"},
  };
  expect_all(cases);
}

TEST(ParseJson, ReportsAllDuplicateKeysInTheOrderOfTheText) {
  EXPECT_EQ(shape(parse_json(R"({"z":1,"a":2,"z":3,"b":{"c":1,"c":2},"a":4,"z":5})")),
            "DOC_DUPLICATE_KEY 13-16, DOC_DUPLICATE_KEY 30-33, DOC_DUPLICATE_KEY 37-40, "
            "DOC_DUPLICATE_KEY 43-46");
}

TEST(ParseJson, ReportsDuplicateKeysBeforeASyntaxError) {
  EXPECT_EQ(shape(parse_json(R"([{"a":1,"a":2}, ?])")), "DOC_DUPLICATE_KEY 8-11, DOC_SYNTAX 16-17");
}

TEST(ParseJson, NamesTheDuplicateKeySafely) {
  const auto result = parse_json(R"({"a\u001b":1,"a\u001b":1})");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().front().message, "key \"a\\x1b\" is given twice");
}

TEST(ParseJson, DoesNotReportMoreMistakesThanAPersonReads) {
  std::string text = "{\"a\":1";
  for (int i = 0; i < 100'000; ++i) {
    text += ",\"a\":1";
  }
  const auto result = parse_json(text + "}");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().size(), most_mistakes);
}

// With a pairwise comparison this would take minutes.
TEST(ParseJson, ReadsAHundredThousandKeys) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) {
    text += format("{}\"key{}\":{}", i == 0 ? "" : ",", i, i);
  }
  const auto result = parse_json(text + "}");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->root().count(), 100'000U);
  EXPECT_EQ(result->root().find("key99999")->text(), "99999");
}

TEST(ParseJson, SaysWhatIsWrongAndWhatToDo) {
  struct Message {
    std::string_view input, message, help;
  };
  constexpr Message cases[] = {
      {"", "the document is empty", "a manifest starts with an object: { \"name\": ... }"},
      {"[1,]", "trailing comma", "JSON has none: remove it"},
      {"['a']", "strings stand in double quotes", "replace ' by \""},
      {"[//", "JSON has no comments", "remove it, or write the manifest in YAML"},
      {"[", "the document ends too early", "a closing bracket or a value is missing"},
      {"{\"a\"", "the document ends too early", "a closing bracket or a value is missing"},
      {"{\"a\" 1}", "expected ':' after the key", "write \"key\": value"},
  };
  for (const auto& [input, message, help] : cases) {
    const auto result = parse_json(std::string(input));
    ASSERT_FALSE(result) << input;
    EXPECT_EQ(result.error().front().message, message) << input;
    EXPECT_EQ(result.error().front().help, help) << input;
  }
}

TEST(JsonStringOffset, FollowsEscapes) {
  // a, é as an escape (2 bytes), a pair (4 bytes), a line break, z.
  constexpr std::string_view raw = R"("a\u00e9\ud83d\ude00\nz")";
  constexpr std::size_t expected[] = {1, 2, 8, 8, 20, 20, 20, 20, 22, 23};
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(json_string_offset(raw, i), expected[i]) << i;
  }
  EXPECT_EQ(json_string_offset(raw, 1000), raw.size() - 1);
}

TEST(ParseJsonc, TakesCommentsAndACommaAfterTheLastItem) {
  const Case cases[] = {
      {"// a\n{ /* b */ \"a\" /**/ : // c\r[1, /* d */ 2 , ] , } // e", R"({"a":[1,2]})"},
      {"/* // */ 1", "1"},
      {"// /*\n1", "1"},
      {"[\"//\", \"/* */\"]", R"(["//","/* */"])"},
      {"", "null"},
      {" /* nothing */\n", "null"},
      {R"(["\ud83d", "\ude00x", "\ud83d\ude00"])",
       "[\"\xef\xbf\xbd\",\"\xef\xbf\xbdx\",\"\xf0\x9f\x98\x80\"]"},
  };
  for (const auto& [input, expected] : cases) {
    EXPECT_EQ(shape(parse_jsonc(input)), expected) << escape_for_terminal(input);
  }
}

TEST(ParseJsonc, RefusesEverythingElseThatJsonRefuses) {
  const Case cases[] = {
      {"[,]", "DOC_SYNTAX 1-2"},
      {"[1,,2]", "DOC_SYNTAX 3-4"},
      {"{,}", "DOC_SYNTAX 1-2"},
      {"[1] /* open", "DOC_SYNTAX 4-11"},
      {"[1 /* open", "DOC_SYNTAX 3-4"},
      {"[ /* open ]", "DOC_SYNTAX 2-4"},
      {"[ /*/ ]", "DOC_SYNTAX 2-4"},
      {"[ / ]", "DOC_SYNTAX 2-3"},
      {"# a", "DOC_SYNTAX 0-1"},
      {"{a: 1}", "DOC_SYNTAX 1-2"},
      {R"({"a": 1, "a": 2,})", "DOC_DUPLICATE_KEY 9-12"},
      {"\xef\xbb\xbf", "DOC_ENCODING 0-3"},
      {"// \xff", "DOC_ENCODING 3-4"},
  };
  for (const auto& [input, expected] : cases) {
    EXPECT_EQ(shape(parse_jsonc(input)), expected) << escape_for_terminal(input);
  }
}

}  // namespace
}  // namespace capgate::text
