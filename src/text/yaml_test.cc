#include "text/yaml.h"

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
    EXPECT_EQ(shape(parse_yaml(input)), expected) << escape_for_terminal(input);
  }
}

Kind kind_of(const std::string& scalar) {
  const auto result = parse_yaml("- " + scalar + "\n");
  return result ? (*result->root().elements().begin()).kind() : Kind::object;
}

// What the source holds at the place that `value` claims.
std::string_view source_of(Value value) {
  const Span span = value.span();
  return value.document().source().substr(span.begin, span.end - span.begin);
}

TEST(ParseYaml, TypesPlainScalarsByTheCoreSchema) {
  for (const std::string text : {"~", "null", "Null", "NULL", "", "# nothing"}) {
    EXPECT_EQ(kind_of(text), Kind::null) << text;
  }
  for (const std::string text : {"true", "True", "TRUE", "false", "False", "FALSE"}) {
    EXPECT_EQ(kind_of(text), Kind::boolean) << text;
  }
  for (const std::string text :
       {"0",     "7",     "-1",    "+12",  "007",  "0o17", "0x1F",   "0xaf", "1.5",
        "-0.25", ".5",    "+.5",   "1.",   "1e9",  "1E-9", "1.5e+3", ".5e1", "1.e1",
        ".inf",  "-.inf", "+.Inf", ".INF", ".nan", ".NaN", ".NAN"}) {
    EXPECT_EQ(kind_of(text), Kind::number) << text;
    EXPECT_EQ(shape(parse_yaml("[" + text + "]")), "[" + text + "]");
  }
}

// Whoever reads a boolean compares its text with "true".
TEST(ParseYaml, SpellsABooleanInOneWay) {
  constexpr std::pair<std::string_view, std::string_view> spellings[] = {
      {"true", "true"},   {"True", "true"},   {"TRUE", "true"},
      {"false", "false"}, {"False", "false"}, {"FALSE", "false"},
  };
  for (const std::string_view form : {"- {}\n", "[{}]", "- {} # x\n", "[ \xc3\xa9, {} ]"}) {
    for (const auto& [written, read] : spellings) {
      std::string text(form);
      text.replace(text.find("{}"), 2, written);
      const auto result = parse_yaml(text);
      ASSERT_TRUE(result) << text;
      std::optional<Value> last;
      for (const Value element : result->root().elements()) last = element;
      EXPECT_EQ(last->kind(), Kind::boolean) << text;
      EXPECT_EQ(last->text(), read) << text;
      EXPECT_EQ(source_of(*last), written) << text;
      EXPECT_EQ(last->locate(0, 1).begin, last->span().begin) << text;
    }
  }
  EXPECT_EQ(shape(parse_yaml("True: \"True\"\nFALSE: 'FALSE'\n")),
            R"({"True":"True","FALSE":"FALSE"})");
}

TEST(ParseYaml, TakesEveryOtherPlainScalarAsAString) {
  for (const std::string text :
       {"no",    "yes", "on",       "Off",        "y",     "nULL", "tRUE", "none",  "1.2.3",
        "1_000", "0b1", "0o",       "0x",         "0o8",   "0xg",  "-0x1", "+0o7",  "0O7",
        "1e",    "e1",  ".",        "..",         "+",     "-.",   ".e1",  ".infx", "-.nan",
        ".iNF",  "1 2", "12:30:45", "2024-01-01", "1,000", "a",    "-a",   "=",     "<<"}) {
    EXPECT_EQ(kind_of(text), Kind::string) << text;
  }
}

TEST(ParseYaml, TakesQuotedAndBlockScalarsAsStrings) {
  for (const std::string text : {"\"1\"", "'true'", "\"\"", "''", "'~'", "|\n 1", ">\n null"}) {
    EXPECT_EQ(kind_of(text), Kind::string) << text;
  }
}

TEST(ParseYaml, ReadsBlocksAndFlows) {
  const Case cases[] = {
      {"a: 1\nb:\n  - x\n  - y: z\n    w:\n", R"({"a":1,"b":["x",{"y":"z","w":null}]})"},
      {"a:\n- 1\n- 2\nb: 3\n", R"({"a":[1,2],"b":3})"},
      {"- - 1\n  - 2\n-\n  - 3\n", "[[1,2],[3]]"},
      {"{a: [1, 'x'], \"b\": {c: }, d}", R"({"a":[1,"x"],"b":{"c":null},"d":null})"},
      {"[a, [], {}, ]", R"(["a",[],{}])"},
      {"[a: 1, ? b : 2]", R"([{"a":1},{"b":2}])"},
      {"--- # start\na: 1 # end\n...\n# after\n", R"({"a":1})"},
      {"? a\n: 1\n? b\n", R"({"a":1,"b":null})"},
      {"text\n", R"("text")"},
      {"a: b\n c\n\n d\n", R"({"a":"b c\x0ad"})"},
      {"fs:read:/a/**", R"("fs:read:/a/**")"},
      {"- fs:read:/a/**\n- net:connect:api.x.com:443\n",
       R"(["fs:read:/a/**","net:connect:api.x.com:443"])"},
      {"{\"a\":1,\"b\":[true,null]}", R"({"a":1,"b":[true,null]})"},
      {"{\n\t\"a\":\t1\n}", R"({"a":1})"},
  };
  expect_all(cases);
}

TEST(ParseYaml, ReadsBlockScalars) {
  const Case cases[] = {
      {"a: |\n  x\n   y\n\n  z\n\nb: 1\n", R"({"a":"x\x0a y\x0a\x0az\x0a","b":1})"},
      {"a: |-\n  x\n", R"({"a":"x"})"},
      {"a: |+\n  x\n\n", R"({"a":"x\x0a\x0a"})"},
      {"a: >\n  x\n  y\n\n  z\n", R"({"a":"x y\x0az\x0a"})"},
      {"a: |2\n   x\n", R"({"a":" x\x0a"})"},
      {"a: |\nb: 1\n", R"({"a":"","b":1})"},
      {"a: |\n  # text\n  %x\n  &y *z !w\n", R"({"a":"# text\x0a%x\x0a&y *z !w\x0a"})"},
  };
  expect_all(cases);
}

TEST(ParseYaml, DecodesQuotedScalars) {
  const Case cases[] = {
      {R"("\x41\u00e9\U0001F600\n\t\"\\\/\e\0")",
       "\"A\xc3\xa9\xf0\x9f\x98\x80\\x0a\\x09\"\\/\\x1b\\x00\""},
      {R"("\_\N\L")", "\"\xc2\xa0\\u{0085}\\u{2028}\""},
      {"'it''s \\n'", R"("it's \n")"},
      {"\"a\n  b\n\n  c\\\n  d\"", R"("a b\x0acd")"},
      {"'a\n  b'", R"("a b")"},
  };
  expect_all(cases);
}

TEST(ParseYaml, TakesAPlainKeyAsItsText) {
  const Case cases[] = {
      {"true: 1\n1: 2\n~: 3\n0x1: 4\n", R"({"true":1,"1":2,"~":3,"0x1":4})"},
      {"\"\": 1\n", R"({"":1})"},
      {"\"<<\": 1\n", R"({"<<":1})"},
      {"1: a\n\"1\": b\n", "DOC_DUPLICATE_KEY 5-8"},
  };
  expect_all(cases);
}

TEST(ParseYaml, RefusesAnEmptyDocument) {
  for (const std::string text : {"", " \n\n", "# only a comment\n", "---\n", "---\n...\n"}) {
    const auto result = parse_yaml(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().front().message, "the document is empty");
    EXPECT_NE(result.error().front().help, "");
  }
  EXPECT_EQ(shape(parse_yaml("~")), "null");
  EXPECT_EQ(shape(parse_yaml("''")), "\"\"");
}

TEST(ParseYaml, RefusesAnchorsAliasesAndMergeKeys) {
  const Case cases[] = {
      {"a: &x 1\n", "YAML_FEATURE 3-5"},
      {"&x a: 1\n", "YAML_FEATURE 0-2"},
      {"&x\na: 1\n", "YAML_FEATURE 0-2"},
      {"a: &x [1]\n", "YAML_FEATURE 3-5"},
      {"a: &long {b: 1}\n", "YAML_FEATURE 3-8"},
      {"- &x\n- 1\n", "YAML_FEATURE 2-4"},
      {"a: *x\n", "YAML_FEATURE 3-5"},
      {"*x : 1\n", "YAML_FEATURE 0-2"},
      {"[*x, *y]\n", "YAML_FEATURE 1-3, YAML_FEATURE 5-7"},
      {"<<: {a: 1}\n", "YAML_FEATURE 0-2"},
      {"a:\n  <<: *b\n", "YAML_FEATURE 5-7, YAML_FEATURE 9-11"},
  };
  expect_all(cases);
}

TEST(ParseYaml, RefusesTags) {
  const Case cases[] = {
      {"a: !!str 1\n", "YAML_FEATURE 3-8"},
      {"a: !foo bar\n", "YAML_FEATURE 3-7"},
      {"a: ! 1\n", "YAML_FEATURE 3-4"},
      {"a: ! '1'\n", "YAML_FEATURE 3-4"},
      {"a: !\n", "YAML_FEATURE 3-4"},
      {"!foo a: 1\n", "YAML_FEATURE 0-4"},
      {"!!map {a: 1}\n", "YAML_FEATURE 0-5"},
      {"- !!python/object/apply:os.system [ls]\n", "YAML_FEATURE 2-33"},
      {"[!<tag:x> a]\n", "YAML_FEATURE 1-9"},
      {"a: !!str &x 1\n", "YAML_FEATURE 3-8, YAML_FEATURE 9-11"},
      {"a: &x !!str 1\n", "YAML_FEATURE 3-5, YAML_FEATURE 6-11"},
      {"a: !e!x 1\n", "YAML_FEATURE 3-4"},
      {"! &x a: 1\n", "YAML_FEATURE 0-1, YAML_FEATURE 2-4"},
  };
  expect_all(cases);
}

TEST(ParseYaml, RefusesDirectives) {
  const Case cases[] = {
      {"%YAML 1.2\n---\na: 1\n", "YAML_FEATURE 0-1"},
      {"# c\n%TAG ! x:\n---\na: 1\n", "YAML_FEATURE 4-5"},
      {"%FOO\n---\na: 1\n", "YAML_FEATURE 0-1"},
      {"a: 1\n...\n%YAML 1.1\n---\nb: 1\n", "YAML_FEATURE 9-10"},
      {"a: 100%\nb: x%y\nc: '%z'\n %d: 1\n", "DOC_SYNTAX 24-25"},
      {"a: 100%\nb: x%y\nc: '%z'\n", R"({"a":"100%","b":"x%y","c":"%z"})"},
  };
  expect_all(cases);
}

// libyaml alone needs more than a minute for this.
TEST(ParseYaml, RefusesAHundredThousandDirectivesAtOnce) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += format("%TAG !a{}! b\n", i);
  }
  EXPECT_EQ(shape(parse_yaml(text + "---\na\n")), "YAML_FEATURE 0-1");
}

TEST(ParseYaml, RefusesASecondDocument) {
  const Case cases[] = {
      {"a: 1\n---\nb: 2\n", "YAML_FEATURE 5-8"},       {"a: 1\n---\n", "YAML_FEATURE 5-8"},
      {"a: 1\n...\n---\nb: 2\n", "YAML_FEATURE 9-12"}, {"a: 1\n...\nb: 2\n", "DOC_SYNTAX 9-10"},
      {"--- a\n--- b\n", "YAML_FEATURE 6-9"},          {"---\n---\na: 1\n", "DOC_SYNTAX 0-0"},
  };
  expect_all(cases);
}

TEST(ParseYaml, RefusesKeysThatAreNotText) {
  const Case cases[] = {
      {"[a]: 1\n", "YAML_FEATURE 0-3"},     {"{a: 1}: 1\n", "YAML_FEATURE 0-2"},
      {"? [a]\n: 1\n", "YAML_FEATURE 2-5"}, {"? - a\n: 1\n", "YAML_FEATURE 2-5"},
      {"{[a]: 1}\n", "YAML_FEATURE 1-4"},   {"?\n: 1\n", "DOC_SYNTAX 1-1"},
      {"{: 1}\n", "DOC_SYNTAX 1-2"},
  };
  expect_all(cases);
}

TEST(ParseYaml, RefusesTheBillionLaughs) {
  std::string text = "a0: &a0 [lol, lol, lol]\n";
  for (int i = 1; i < 10; ++i) {
    text += format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  const auto result = parse_yaml(text);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().size(), 10U + 9U * 4U);
  for (const Diagnostic& mistake : result.error()) {
    EXPECT_EQ(mistake.code, Code::yaml_feature);
  }
}

TEST(ParseYaml, DoesNotReportMoreMistakesThanAPersonReads) {
  std::string text = "[";
  for (int i = 0; i < 10'000; ++i) {
    text += "*a, ";
  }
  const auto result = parse_yaml(text + "]");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().size(), most_mistakes);
}

TEST(ParseYaml, RefusesCharactersThatMustNotStandInTheSource) {
  const Case cases[] = {
      {"a: \0\n"s, "DOC_SYNTAX 3-4"},
      {"a: \"\x01\"\n", "DOC_SYNTAX 4-5"},
      {"a: \x1b[0m\n", "DOC_SYNTAX 3-4"},
      {"a: x\x7f\n", "DOC_SYNTAX 4-5"},
      {"a: x\xc2\x80\n", "DOC_SYNTAX 4-6"},
      {"a: x\xc2\xa0\n", "{\"a\":\"x\xc2\xa0\"}"},
      {"a: x\xef\xbb\xbf\n", "DOC_SYNTAX 4-7"},
      {"a: x\xef\xbf\xbf\n", "DOC_SYNTAX 4-7"},
      {"a: x\xef\xbf\xbd\n", "{\"a\":\"x\xef\xbf\xbd\"}"},
      {"a: 1\x0b\n", "DOC_SYNTAX 4-5"},
  };
  expect_all(cases);
}

// Where libyaml sees a line break and an editor may not, a comment hides an entry.
TEST(ParseYaml, RefusesLineBreaksThatEditorsDoNotShow) {
  const Case cases[] = {
      {"# c\re: 1\n", "DOC_SYNTAX 3-4"},
      {"a: 1\r", "DOC_SYNTAX 4-5"},
      {"# c\xc2\x85"
       "e: 1\n",
       "DOC_SYNTAX 3-5"},
      {"# c\xe2\x80\xa8"
       "e: 1\n",
       "DOC_SYNTAX 3-6"},
      {"# c\xe2\x80\xa9"
       "e: 1\n",
       "DOC_SYNTAX 3-6"},
  };
  expect_all(cases);
}

TEST(ParseYaml, RefusesWhatIsNotUtf8) {
  const Case cases[] = {
      {"\xef\xbb\xbf"
       "a: 1\n",
       "DOC_ENCODING 0-3"},
      {"a: \xff\n", "DOC_ENCODING 3-4"},
      {"a: \xc0\xaf\n", "DOC_ENCODING 3-4"},
      {"\xff\xfe"
       "a\0"s,
       "DOC_ENCODING 0-1"},
      {"\xfe\xff\0a"s, "DOC_ENCODING 0-1"},
      {R"(a: "\ud800")", "DOC_SYNTAX 6-7"},
  };
  expect_all(cases);
}

TEST(ParseYaml, RefusesMoreThan128Levels) {
  const std::string flow = std::string(128, '[') + std::string(128, ']');
  EXPECT_EQ(shape(parse_yaml(flow)), flow);
  EXPECT_EQ(shape(parse_yaml("[" + flow + "]")), "DOC_DEPTH 128-129");
  EXPECT_EQ(shape(parse_yaml(std::string(1 << 20, '['))), "DOC_DEPTH 128-129");
  std::string dashes;
  for (int i = 0; i < 128; ++i) {
    dashes += "- ";
  }
  EXPECT_TRUE(parse_yaml(dashes + "x"));
  EXPECT_EQ(shape(parse_yaml(dashes + "- x")), "DOC_DEPTH 256-257");
}

TEST(ParseYaml, RefusesMoreThan16MiB) {
  std::string text(largest_document, ' ');
  text[0] = '1';
  EXPECT_EQ(shape(parse_yaml(text)), "1");
  EXPECT_EQ(shape(parse_yaml(text + ' ')), "DOC_SIZE 0-0");
}

TEST(ParseYaml, RefusesDuplicateKeysAndReportsAllOfThem) {
  const Case cases[] = {
      {"a: 1\nb: 2\na: 3\n", "DOC_DUPLICATE_KEY 10-11"},
      {"a: 1\n\"\\x61\": 2\n", "DOC_DUPLICATE_KEY 5-11"},
      {"{a: 1, 'a': 2}", "DOC_DUPLICATE_KEY 7-10"},
      {"z: {c: 1, c: 2}\na: 1\nz: 3\na: 2\n",
       "DOC_DUPLICATE_KEY 10-11, DOC_DUPLICATE_KEY 21-22, DOC_DUPLICATE_KEY 26-27"},
      {"a: *x\na: !t 1\n", "YAML_FEATURE 3-5, DOC_DUPLICATE_KEY 6-7, YAML_FEATURE 9-11"},
      {"a: {b: 1, b: 2}\nc: @\n", "DOC_DUPLICATE_KEY 10-11, DOC_SYNTAX 19-20"},
      {"- a: 1\n- a: 1\n", R"([{"a":1},{"a":1}])"},
  };
  expect_all(cases);
}

TEST(ParseYaml, ReadsAHundredThousandKeys) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += format("key{}: {}\n", i, i);
  }
  const auto result = parse_yaml(text);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->root().count(), 100'000U);
}

struct Message {
  std::string input;
  Span where;
  std::string_view message;
  std::string_view help;
};

TEST(ParseYaml, SaysWhatIsWrongWhereAndWhatToDo) {
  const Message cases[] = {
      {"a:\n\tb: 1\n", Span::at(3, 4), "a tab indents this line",
       "indent with spaces: YAML takes no tabs there"},
      {"a:\n  b: 1\n \tc: 1\n", Span::at(11, 12), "a tab indents this line",
       "indent with spaces: YAML takes no tabs there"},
      {"a: |\n\tb\n", Span::at(5, 6), "a tab indents this line",
       "indent with spaces: YAML takes no tabs there"},
      {"{\n\t\"a\": @\n}", Span::at(8, 9),
       "YAML syntax: found character that cannot start any token",
       "put a text that starts like this in quotes"},
      {"b: 1\na: \"x\nc: 2\n", Span::at(8, 9), "YAML syntax: found unexpected end of stream",
       "close the quote that opens here"},
      {"a: [1, 2\nb: 3\n", Span::at(3, 4), "YAML syntax: did not find expected ',' or ']'",
       "close the list that opens here, commas between items"},
      {"a: b: c\n", Span::at(4, 5), "YAML syntax: mapping values are not allowed in this context",
       "indent keys alike, and put a text that contains a colon and a space in quotes"},
      {"a: 1\n b: 2\n", Span::at(7, 8),
       "YAML syntax: mapping values are not allowed in this context",
       "indent keys alike, and put a text that contains a colon and a space in quotes"},
      {"a: \"\\q\"\n", Span::at(4, 5), "YAML syntax: found unknown escape character",
       "write a backslash as \\\\, or use single quotes"},
      {"a: *x\n", Span::at(3, 5), "aliases are not allowed",
       "write the value out where it is needed"},
      {"# \x1b[2J\n", Span::at(2, 3), "character \\x1b is not allowed here",
       "remove it, or write it as an escape in double quotes; lines end with LF or CRLF"},
  };
  for (const auto& [input, where, message, help] : cases) {
    const auto result = parse_yaml(input);
    ASSERT_FALSE(result) << input;
    EXPECT_EQ(result.error().front().where, where) << input;
    EXPECT_EQ(result.error().front().message, message) << input;
    EXPECT_EQ(result.error().front().help, help) << input;
  }
}

TEST(ParseYaml, KeepsSpansInBytesAfterNonAsciiText) {
  const auto result = parse_yaml(
      "# \xe2\x82\xac\xf0\x9f\x98\x80\n\xd0\xba: [\xc3\xa9, \"\xc3\xa9\\n\", '\xe2\x82\xac']\n"
      "z: {y: end}\n");
  ASSERT_TRUE(result);
  const Value root = result->root();
  EXPECT_EQ(source_of((*root.members().begin()).key), "\xd0\xba");
  const Value list = *root.find("\xd0\xba");
  EXPECT_EQ(source_of(list), "[\xc3\xa9, \"\xc3\xa9\\n\", '\xe2\x82\xac']");
  std::vector<std::string_view> items;
  for (const Value item : list.elements()) {
    items.push_back(source_of(item));
  }
  EXPECT_EQ(items,
            (std::vector<std::string_view>{"\xc3\xa9", "\"\xc3\xa9\\n\"", "'\xe2\x82\xac'"}));
  EXPECT_EQ(source_of(*root.find("z")), "{y: end}");
}

TEST(ParseYaml, KeepsSpansInBytesFarIntoNonAsciiText) {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += format("\xe2\x82\xack{}: \xc3\xa9{}\n", i, i);
  }
  const auto result = parse_yaml(text);
  ASSERT_TRUE(result);
  for (const Member member : result->root().members()) {
    EXPECT_EQ(source_of(member.key), member.key.text());
    EXPECT_EQ(source_of(member.value), member.value.text());
  }
}

TEST(ParseYaml, EndsABlockWithItsLastValue) {
  const std::string text = "a:\n  - x\n  - b: |\n      t\n\n# comment\nc: 1\n";
  const auto result = parse_yaml(text);
  ASSERT_TRUE(result);
  EXPECT_EQ(source_of(result->root()), text.substr(0, text.size() - 1));
  EXPECT_EQ(source_of(*result->root().find("a")), "- x\n  - b: |\n      t");
  const auto pair = parse_yaml("[a: b , c]");
  ASSERT_TRUE(pair);
  EXPECT_EQ(source_of(*pair->root().elements().begin()), "a: b");
}

TEST(ParseYaml, ReadsCrlfLikeLf) {
  const auto result = parse_yaml("a: 1\r\nb:\r\n  - \"x\r\n    y\"\r\n  - |\r\n    t\r\nc: d\r\n");
  EXPECT_EQ(shape(result), R"({"a":1,"b":["x y","t\x0a"],"c":"d"})");
  EXPECT_EQ(source_of(*result->root().find("c")), "d");
  EXPECT_EQ(shape(parse_yaml("a: 1\r\nb: @\r\n")), "DOC_SYNTAX 9-10");
}

TEST(ParseYaml, LocatesTextExactlyWhereItStandsAsItIs) {
  for (const std::string scalar : {"abcdef", "'abcdef'", "\"abcdef\"",
                                   "\xc3\xa9"
                                   "bcdef"}) {
    const auto result = parse_yaml("\xe2\x82\xac: " + scalar + "\n");
    ASSERT_TRUE(result);
    const Value value = (*result->root().members().begin()).value;
    const Span span = value.locate(3, 5);
    EXPECT_EQ(result->source().substr(span.begin, span.end - span.begin),
              value.text().substr(3, 2));
  }
}

// JSON's rules would follow \x, \_ and folded lines to a wrong place.
TEST(ParseYaml, LocatesDecodedTextAsAWhole) {
  for (const std::string scalar : {R"("\x41bcdef")", R"("\_\N\L\P")", "\"a\n   b\n   c\"",
                                   "'it''s'", R"("\n\n")", "|\n  abc", "a\n  b"}) {
    const auto result = parse_yaml("k: " + scalar + "\n");
    ASSERT_TRUE(result) << scalar;
    const Value value = *result->root().find("k");
    EXPECT_EQ(value.locate(0, 1), value.span()) << scalar;
    EXPECT_EQ(value.locate(1, value.text().size()), value.span()) << scalar;
    EXPECT_EQ(source_of(value), scalar);
  }
}

}  // namespace
}  // namespace capgate::text
