#include "text/document.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support/shape.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::text {
namespace {

Document read(std::string text) {
  auto result = parse_json(std::move(text));
  CAPGATE_ASSERT(result.has_value());
  return *std::move(result);
}

std::string_view source_at(const Document& document, Span span) {
  return document.source().substr(span.begin, span.end - span.begin);
}

TEST(Document, KnowsWhereEveryValueStands) {
  const Document document = read(R"( {"a": [1, "x\n"], "b": {"c": null}} )");
  const Value root = document.root();
  EXPECT_EQ(source_at(document, root.span()), R"({"a": [1, "x\n"], "b": {"c": null}})");
  EXPECT_EQ(source_at(document, root.find("a")->span()), R"([1, "x\n"])");
  EXPECT_EQ(source_at(document, root.find("b")->find("c")->span()), "null");
  std::vector<std::string_view> items;
  for (const Value item : root.find("a")->elements()) {
    items.push_back(source_at(document, item.span()));
  }
  EXPECT_EQ(items, (std::vector<std::string_view>{"1", R"("x\n")"}));
}

TEST(Document, FindsMembersByTheirDecodedKey) {
  const Document document = read(R"({"a": 1, "b\u0063": {"a": 2}})");
  EXPECT_EQ(document.root().find("a")->text(), "1");
  EXPECT_EQ(document.root().find("bc")->find("a")->text(), "2");
  EXPECT_FALSE(document.root().find("b"));
  EXPECT_FALSE(document.root().find(""));
}

TEST(Document, StaysValidWhenItIsMoved) {
  for (const std::string text : {"[\"a\"]", "[\"a\\n and more than the small buffer holds\"]"}) {
    Document first = read(text);
    const std::string before = shape(first.root());
    const Document second = std::move(first);
    EXPECT_EQ(shape(second.root()), before);
  }
}

TEST(Document, HasEmptyChildren) {
  const Document document = read("[[], {}]");
  for (const Value child : document.root().elements()) {
    EXPECT_EQ(child.count(), 0U);
    if (child.is(Kind::array)) {
      EXPECT_EQ(child.elements().begin(), child.elements().end());
    } else {
      EXPECT_EQ(child.members().begin(), child.members().end());
    }
  }
}

TEST(DocumentDeathTest, RefusesToWalkAScalar) {
  const Document document = read("1");
  EXPECT_DEATH((void)document.root().elements(), "is\\(Kind::array\\)");
  EXPECT_DEATH((void)document.root().members(), "is\\(Kind::object\\)");
}

struct Located {
  std::string_view raw;
  std::size_t from;
  std::size_t to;
  std::string_view expected;
};

TEST(Locate, FindsTheBytesOfTheTextInTheSource) {
  constexpr Located cases[] = {
      {R"("abcdef")", 0, 6, "abcdef"},
      {R"("abcdef")", 2, 4, "cd"},
      {R"("abcdef")", 6, 6, ""},
      {"\"\xc3\xa9"
       "bc\"",
       2, 3, "b"},
      {R"("a\nb")", 0, 1, "a"},
      {R"("a\nb")", 1, 2, R"(\n)"},
      {R"("a\nb")", 2, 3, "b"},
      {R"("a\nb")", 0, 3, R"(a\nb)"},
      {R"("\u00e9x")", 0, 2, R"(\u00e9)"},
      {R"("\u00e9x")", 2, 3, "x"},
      {R"("\ud83d\ude00x")", 0, 4, R"(\ud83d\ude00)"},
      {R"("\ud83d\ude00x")", 4, 5, "x"},
      {R"("\"\\\/x")", 3, 4, "x"},
      {R"("\u0000x")", 1, 2, "x"},
      {R"("\n")", 1, 1, ""},
  };
  for (const auto& [raw, from, to, expected] : cases) {
    const Document document = read("[ " + std::string(raw) + " ]");
    const Value value = *document.root().elements().begin();
    EXPECT_EQ(source_at(document, value.locate(from, to)), expected) << raw << from;
  }
}

TEST(FindDuplicateKeys, GivesThePairsInTheOrderOfTheText) {
  // Built by hand, because the parsers refuse such an object.
  Document document(share(R"({"z":0,"a":0,"z":0,"a":0,"z":0})"));
  const std::uint32_t self = document.add({.kind = Kind::object, .span = Span::at(0, 0)});
  for (std::uint32_t at = 1; at < 30; at += 6) {
    document.add({.kind = Kind::string,
                  .next = static_cast<std::uint32_t>(document.size() + 1),
                  .span = Span::at(at, at + 3),
                  .text = Span::at(at + 1, at + 2)});
    document.add({.kind = Kind::number,
                  .next = static_cast<std::uint32_t>(document.size() + 1),
                  .span = Span::at(at + 4, at + 5),
                  .text = Span::at(at + 4, at + 5)});
  }
  document.close(self, 5, 31);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  for (const auto& [first, second] : find_duplicate_keys(document.root())) {
    found.emplace_back(first.span().begin, second.span().begin);
  }
  EXPECT_EQ(found,
            (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 13}, {7, 19}, {13, 25}}));
}

// A random tree, as JSON text and as what shape() must make of it.
struct Tree {
  std::string json;
  std::string shape;
};

void append_escaped(std::string& out, char32_t c) {
  if (c == '"' || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c < 0x20 || c == 0x7f) {
    out += format("\\u{:04x}", static_cast<unsigned>(c));
  } else {
    append_utf8(out, c);
  }
}

Tree random_string(char32_t largest) {
  std::string text;
  Tree tree{.json = "\"", .shape = ""};
  for (const auto c : *rc::gen::container<std::vector<std::uint32_t>>(
           rc::gen::inRange<std::uint32_t>(0, largest))) {
    const char32_t valid = c >= 0xd800 && c <= 0xdfff ? U'x' : char32_t{c};
    append_utf8(text, valid);
    append_escaped(tree.json, valid);
  }
  tree.json += '"';
  tree.shape = format("\"{}\"", escape_for_terminal(text));
  return tree;
}

Tree random_tree(int depth, char32_t largest);

Tree random_array(int depth, char32_t largest) {
  Tree out{.json = "[", .shape = "["};
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) {
    const Tree item = random_tree(depth - 1, largest);
    out.json += (i > 0 ? " , " : " ") + item.json;
    out.shape += (i > 0 ? "," : "") + item.shape;
  }
  return {.json = out.json + "]", .shape = out.shape + "]"};
}

Tree random_object(int depth, char32_t largest) {
  Tree out{.json = "{", .shape = "{"};
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) {
    // The number makes the keys differ.
    const Tree key = random_string(largest);
    const Tree value = random_tree(depth - 1, largest);
    out.json += format("{}\"{}{}:{}", i > 0 ? "," : "", i, key.json.substr(1), value.json);
    out.shape += format("{}\"{}{}:{}", i > 0 ? "," : "", i, key.shape.substr(1), value.shape);
  }
  return {.json = out.json + "}", .shape = out.shape + "}"};
}

Tree random_tree(int depth, char32_t largest) {
  const auto word = [](const std::string& text) { return Tree{.json = text, .shape = text}; };
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0: return word("null");
    case 1: return word(*rc::gen::element<std::string>("true", "false"));
    case 2: return word(*rc::gen::element<std::string>("0", "-1", "2.5", "1e9", "-0.1E-7"));
    case 3: return word(std::to_string(*rc::gen::arbitrary<std::int64_t>()));
    case 4: return random_string(largest);
    case 5: return random_array(depth, largest);
    default: return random_object(depth, largest);
  }
}

TEST(DocumentProperty, ATreePrintedAsJsonIsReadBack) {
  EXPECT_TRUE(rc::check("parse_json(print(tree)) == tree", [] {
    const Tree tree = random_tree(4, 0x110000);
    RC_ASSERT(shape(parse_json(tree.json)) == tree.shape);
  }));
}

TEST(DocumentProperty, JsonIsYaml) {
  EXPECT_TRUE(rc::check("parse_yaml(print(tree)) == tree", [] {
    const Tree tree = random_tree(4, 0x80);
    RC_ASSERT(shape(parse_yaml(tree.json)) == tree.shape);
  }));
}

TEST(DocumentProperty, EveryByteOfAStringIsLocatedInside) {
  EXPECT_TRUE(rc::check("locate stays between the quotes and in order", [] {
    const Document document = read(random_string(0x110000).json);
    const Value value = document.root();
    std::uint32_t last = 1;
    for (std::size_t i = 0; i <= value.text().size(); ++i) {
      const Span span = value.locate(i, value.text().size());
      RC_ASSERT(span.begin >= last);
      RC_ASSERT(span.end == value.span().end - 1);
      last = span.begin;
    }
  }));
}

}  // namespace
}  // namespace capgate::text
