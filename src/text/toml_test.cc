#include "text/toml.h"

#include <gtest/gtest.h>

#include "support/shape.h"
#include "support/toml_oracle.h"

namespace capgate::text {
namespace {

struct Case {
  std::string input;
  std::string_view expected;
};

// Everything that is read here, toml++ reads alike; what is refused, it refuses too.
void expect_all(std::span<const Case> cases) {
  for (const auto& [input, expected] : cases) {
    const auto document = parse_toml(input);
    EXPECT_EQ(shape(document), expected) << input;
    const auto oracle = support::described_by_oracle(input);
    EXPECT_EQ(document.has_value(), oracle.has_value()) << input;
    if (document && oracle) {
      EXPECT_EQ(support::described(document->root()), *oracle) << input;
    }
  }
}

TEST(ParseToml, ReadsKeysAndTables) {
  const Case cases[] = {
      {"", "{}"},
      {"# nothing", "{}"},
      {"a = 1 # b\r\n\tb=\"c\"\n\n", R"({"a":1,"b":"c"})"},
      {"a.b . \"c.d\" = 1\na.e = 2", R"({"a":{"b":{"c.d":1},"e":2}})"},
      {"'' = 1\n\"\\u0061\" = 2\n3 = 4\nd-_ = 5", R"({"":1,"a":2,"3":4,"d-_":5})"},
      {"[a]\nx = 1\n[a.b]\ny = 2\n[ c . 'd e' ]\nz = 3",
       R"({"a":{"x":1,"b":{"y":2}},"c":{"d e":{"z":3}}})"},
      {"[a.b]\nx = 1\n[a]\ny = 2", R"({"a":{"b":{"x":1},"y":2}})"},
      {"[[a]]\nx = 1\n[[a]]\n[a.b]\ny = 2", R"({"a":[{"x":1},{"b":{"y":2}}]})"},
      {"[a]\nb.c = 1\n[a.b.d]\n", R"({"a":{"b":{"c":1,"d":{}}}})"},
      {"a = { b = 1, c.d = \"e\" }\nf = {}", R"({"a":{"b":1,"c":{"d":"e"}},"f":{}})"},
      {"a = [ 1, [ 'b' ], # c\n { d = 2 }\n, ]\nb = [\n]", R"({"a":[1,["b"],{"d":2}],"b":[]})"},
  };
  expect_all(cases);
}

TEST(ParseToml, ReadsStrings) {
  const Case cases[] = {
      {R"(a = "\b\t\n\f\r\"\\\u00e9\U0001F600")",
       "{\"a\":\"\\x08\\x09\\x0a\\x0c\\x0d\"\\\xc3\xa9\xf0\x9f\x98\x80\"}"},
      {R"(a = 'C:\x "y"')", R"({"a":"C:\x "y""})"},
      {"a = \"\"\"\nb\nc\"\"\"", "{\"a\":\"b\\x0ac\"}"},
      {"a = \"\"\"b \\\n\n   c\\  \n d\"\"\"", "{\"a\":\"b cd\"}"},
      {"a = \"\"\"b\"\"c\"\"\"\"\"", "{\"a\":\"b\"\"c\"\"\"}"},
      {"a = '''\n\\n'' '''''", "{\"a\":\"\\n'' ''\"}"},
      {"a = \"\"\nb = ''", R"({"a":"","b":""})"},
      {"a = \"\"\"\"\"\"", R"({"a":""})"},
  };
  expect_all(cases);
}

TEST(ParseToml, ReadsNumbersDatesAndBooleans) {
  for (const std::string text : {"0",
                                 "+1",
                                 "-17",
                                 "1_000",
                                 "0xdead_BEEF",
                                 "0o755",
                                 "0b1101",
                                 "3.14",
                                 "-0.01",
                                 "5e+22",
                                 "1e06",
                                 "6.626e-34",
                                 "9_2.3_1",
                                 "inf",
                                 "-nan",
                                 "1979-05-27T07:32:00Z",
                                 "1979-05-27t00:32:00.999999-07:00",
                                 "1979-05-27 07:32:00",
                                 "1979-05-27",
                                 "07:32:00.5"}) {
    const std::string all = "a = " + text + " # c\nb = [" + text + "]\nc = {d=" + text + "}";
    const auto document = parse_toml(all);
    ASSERT_TRUE(document) << text;
    EXPECT_EQ(document->root().find("a")->text(), text);
    EXPECT_TRUE(document->root().find("a")->is(Kind::number));
    EXPECT_EQ(support::described(document->root()), support::described_by_oracle(all));
  }
  const Case cases[] = {{"a = true\nb = false", R"({"a":true,"b":false})"}};
  expect_all(cases);
}

TEST(ParseToml, RefusesWhatIsNotToml) {
  const Case cases[] = {
      {"a", "DOC_SYNTAX 1-1"},
      {"a =", "DOC_SYNTAX 3-3"},
      {"a = b", "DOC_SYNTAX 4-5"},
      {"= 1", "DOC_SYNTAX 0-1"},
      {"a = 1 b = 2", "DOC_SYNTAX 6-7"},
      {"a = \"b\nc\"", "DOC_SYNTAX 6-7"},
      {"a = \"\\x\"", "DOC_SYNTAX 5-6"},
      {"a = \"\\ud800\"", "DOC_SYNTAX 5-6"},
      {"a = '''b", "DOC_SYNTAX 8-8"},
      {"a = [1 2]", "DOC_SYNTAX 7-8"},
      {"a = [1", "DOC_SYNTAX 6-6"},
      {"a = [,]", "DOC_SYNTAX 5-6"},
      {"a = {b = 1,}", "DOC_SYNTAX 11-12"},
      {"a = {b = 1\n}", "DOC_SYNTAX 10-11"},
      {"a. = 1", "DOC_SYNTAX 3-4"},
      {"[a", "DOC_SYNTAX 2-2"},
      {"[a]]", "DOC_SYNTAX 3-4"},
      {"[[a]", "DOC_SYNTAX 3-4"},
      {"[]", "DOC_SYNTAX 1-2"},
      {"a = 01", "DOC_SYNTAX 4-5"},
      {"a = 1__0", "DOC_SYNTAX 4-5"},
      {"a = 1.", "DOC_SYNTAX 4-5"},
      {"# \x01", "DOC_SYNTAX 2-3"},
      {"a = '\x7f'", "DOC_SYNTAX 5-6"},
      {"a = 1\rb = 2", "DOC_SYNTAX 5-6"},
      {"a = '\xff'", "DOC_ENCODING 5-6"},
  };
  expect_all(cases);
}

TEST(ParseToml, RefusesAKeyThatIsGivenTwice) {
  const Case cases[] = {
      {"a = 1\na = 2", "DOC_DUPLICATE_KEY 6-7"},
      {"a = 1\n\"a\" = 2", "DOC_DUPLICATE_KEY 6-9"},
      {"a = 1\na.b = 2", "DOC_DUPLICATE_KEY 6-7"},
      {"a.b = 1\na = 2", "DOC_DUPLICATE_KEY 8-9"},
      {"[a]\n[a]", "DOC_DUPLICATE_KEY 5-6"},
      {"[a]\n[[a]]", "DOC_DUPLICATE_KEY 6-7"},
      {"[[a]]\n[a]", "DOC_DUPLICATE_KEY 7-8"},
      {"a = []\n[[a]]", "DOC_DUPLICATE_KEY 9-10"},
      {"a = {}\n[a.b]", "DOC_DUPLICATE_KEY 8-9"},
      {"a = {b.c = 1}\n[a.b.d]", "DOC_DUPLICATE_KEY 15-16"},
      {"a = {b = 1, b = 2}", "DOC_DUPLICATE_KEY 12-13"},
      {"[a]\nb.c = 1\n[a.b]", "DOC_DUPLICATE_KEY 15-16"},
      {"[a.b]\n[a]\nb.c = 1", "DOC_DUPLICATE_KEY 10-11"},
  };
  expect_all(cases);
}

TEST(ParseToml, KnowsWhereEverythingStood) {
  const std::string text = "[ a ]\nb . c = [ 'd' , \"\\te\" ]\n";
  const auto document = parse_toml(text);
  ASSERT_TRUE(document);
  const auto source_of = [&](Value value) {
    return text.substr(value.span().begin, value.span().end - value.span().begin);
  };
  const Value table = *document->root().find("a");
  EXPECT_EQ(source_of(table), "[ a ]");
  const Value parent = *table.find("b");
  const Member member = *parent.members().begin();
  EXPECT_EQ(source_of(member.key), "b . c");
  EXPECT_EQ(member.key.text(), "c");
  EXPECT_EQ(source_of(member.value), "[ 'd' , \"\\te\" ]");
  auto element = member.value.elements().begin();
  EXPECT_EQ(source_of(*element), "'d'");
  EXPECT_EQ(source_of(*++element), "\"\\te\"");
}

TEST(ParseToml, HasTheLimitsOfEveryDocument) {
  std::string path = "a";
  for (int i = 0; i < 200; ++i) {
    path += ".a";
  }
  EXPECT_TRUE(shape(parse_toml("[" + path + "]")).starts_with("DOC_DEPTH"));
  EXPECT_TRUE(shape(parse_toml(path + " = 1")).starts_with("DOC_DEPTH"));
  EXPECT_TRUE(shape(parse_toml("a = " + std::string(200, '['))).starts_with("DOC_DEPTH"));
  EXPECT_EQ(shape(parse_toml("\xef\xbb\xbf")), "DOC_ENCODING 0-3");
}

}  // namespace
}  // namespace capgate::text
