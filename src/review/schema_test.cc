#include "review/schema.h"

#include <gtest/gtest.h>

#include "core/grammar.h"
#include "core/manifest.h"
#include "review/schema_patterns.h"
#include "review/schema_value.h"
#include "text/json.h"

namespace capgate::review {
namespace {

text::Value schema_root(const text::Document& document) { return document.root(); }

TEST(SchemaTest, DraftsAreOneDescription) {
  const SchemaValue schema = object({
      {"$ref", "#/$defs/x"},
      {"description", "beside"},
      {"$defs", object({{"x", object({{"prefixItems", list({true})}, {"items", false}})},
                        {"items", object({{"const", "$defs"}})}})},
  });
  EXPECT_EQ(print(schema, Draft::draft_07), R"({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "description": "beside",
  "definitions": {
    "x": {
      "items": [
        true
      ],
      "additionalItems": false
    },
    "items": {
      "const": "$defs"
    }
  },
  "allOf": [
    {
      "$ref": "#/definitions/x"
    }
  ]
}
)");
  EXPECT_TRUE(print(schema, Draft::draft_2020_12).contains("\"$ref\": \"#/$defs/x\",\n  \"desc"));
}

TEST(SchemaTest, EverySchemaIsJsonAndEveryReferenceIsDefined) {
  for (const Subject subject : {Subject::manifest, Subject::config}) {
    for (const Draft draft : {Draft::draft_2020_12, Draft::draft_07}) {
      const std::string printed = print_schema(subject, draft);
      const auto document = text::parse_json(printed);
      ASSERT_TRUE(document.has_value());
      const std::string place = draft == Draft::draft_07 ? "definitions" : "$defs";
      const auto definitions = schema_root(*document).find(place);
      ASSERT_TRUE(definitions.has_value());
      const std::string start = "\"$ref\": \"#/" + place + "/";
      std::size_t count = 0;
      for (std::size_t at = printed.find(start); at != std::string::npos;
           at = printed.find(start, at + 1), ++count) {
        const std::size_t name = at + start.size();
        const std::string target = printed.substr(name, printed.find('"', name) - name);
        EXPECT_TRUE(definitions->find(target).has_value()) << target;
      }
      EXPECT_GT(count, 10U);
    }
  }
}

// A key that the schema knows and the reader does not would be completed by editors, then noted.
TEST(SchemaTest, TheReaderKnowsEveryKey) {
  const std::string printed = print_schema(Subject::manifest, Draft::draft_2020_12);
  const auto document = text::parse_json(printed);
  ASSERT_TRUE(document.has_value());
  std::string manifest = "{";
  for (const auto member : schema_root(*document).find("properties")->members()) {
    const std::string key(member.key.text());
    const bool is_text = key == "name" || key == "version";
    const std::string value = key == "tools" || key == "serverCapabilities" ? "[]"
                              : key == "seal"                               ? "false"
                              : is_text || key != "grammar"                 ? "\"x\""
                                                                            : "\"0.1\"";
    manifest += (manifest.size() > 1 ? ", \"" : "\"") + key + "\": " + value;
  }
  manifest += "}";
  const auto parsed = text::parse_json(manifest);
  ASSERT_TRUE(parsed.has_value()) << manifest;
  const auto read = core::parse_manifest(*parsed, {});
  ASSERT_TRUE(read.has_value()) << manifest;
  EXPECT_TRUE(read->notes.empty()) << read->notes.front();
}

// What not every engine of regular expressions knows, or knows by another meaning.
TEST(SchemaTest, PatternsArePlain) {
  std::vector<std::string> all;
  for (const KindPattern& kind : kind_patterns()) {
    all.push_back(kind.pattern);
    for (const Mistake& mistake : kind.mistakes) all.push_back(mistake.pattern);
  }
  for (const Mistake& mistake : beyond_grammar_0_0()) all.push_back(mistake.pattern);
  EXPECT_GT(all.size(), 30U);
  for (const std::string& pattern : all) {
    EXPECT_TRUE(pattern.starts_with('^')) << pattern;
    for (const char* special : {"(?=", "(?!", "(?<", "\\d", "\\w", "\\s", "\\b", "\\1", "\\p"}) {
      EXPECT_FALSE(pattern.contains(special)) << special << " in " << pattern;
    }
  }
}

TEST(SchemaTest, SlipsAreOneLetterOff) {
  EXPECT_EQ(pattern::slips_of("ab"), "[!-~]ab|[!-~]?b|a[!-~]b|a[!-~]?|ab[!-~]");
}

}  // namespace
}  // namespace capgate::review
