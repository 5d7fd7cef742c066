#include "import/formats.h"

#include <gtest/gtest.h>

#include <set>

#include "base/format.h"
#include "text/json.h"

namespace capgate::imports {
namespace {

std::string detect(const std::string& json) {
  const auto document = text::parse_json(json);
  if (!document) return "not JSON";
  const auto format = detect_format(*document);
  if (format) return std::string((*format)->name);
  EXPECT_EQ(format.error().code, Code::import_format);
  return capgate::format("{}; {}", format.error().message, format.error().help);
}

TEST(Formats, NamesAreDistinctAndFound) {
  std::set<std::string_view> names;
  for (const Format& format : formats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_EQ(find_format(format.name), &format);
    EXPECT_FALSE(format.description.empty());
  }
  EXPECT_EQ(find_format("tar"), nullptr);
}

TEST(Formats, ExactlyOneFits) {
  EXPECT_EQ(detect(R"({"manifest_version": "0.3"})"), "mcpb");
  EXPECT_EQ(detect(R"({"name": "a/b", "packages": []})"), "server-json");
  EXPECT_TRUE(detect(R"({"manifest_version": "0.3", "name": "a/b", "packages": []})")
                  .starts_with("this could be several formats: mcpb, server-json; say which one "
                               "with --from FORMAT"));
  EXPECT_TRUE(
      detect("{}").starts_with("this is none of the formats that can be told apart; say "
                               "which one with --from FORMAT: mcpb, server-json"))
      << detect("{}");
  EXPECT_TRUE(detect("7").starts_with("this is none"));
}

TEST(Formats, WhatIsSomethingElseIsToldWhereItBelongs) {
  EXPECT_TRUE(
      detect(R"({"name": "x", "version": "1", "tools": [{"name": "t", "capabilities": []}]})")
          .starts_with("this is a capgate manifest already; read it with capgate check"));
  EXPECT_TRUE(detect(R"({"serverCapabilities": []})").contains("capgate manifest"));
  EXPECT_TRUE(detect(R"({"capgateEgress": 1})").contains("capgate egress"));
  EXPECT_TRUE(detect(R"({"mcpServers": {"a": {"command": "node"}}})").contains("capgate wrap"));
  EXPECT_TRUE(detect(R"({"servers": {"a": {"url": "https://x"}}})").contains("capgate wrap"));
  EXPECT_TRUE(detect(R"({"mcp": {"a": {"command": ["node"]}}})").contains("capgate wrap"));
  for (const char* config : {R"({"servers": {"a": {"command": ["node"]}}})",
                             R"({"$schema": "x", "servers": {"a": {"manifest": "catalog:a"}}})",
                             R"({"servers": {"b": {"url": "https://x"}, "a": {"seal": true}}})"}) {
    EXPECT_TRUE(detect(config).starts_with(
        "this is a capgate.yaml; start its servers with capgate run --profile NAME"))
        << detect(config);
  }
  EXPECT_TRUE(detect(R"({"inputs": [], "servers": {"a": {"command": "node", "type": "stdio"}}})")
                  .contains("capgate wrap"));
}

}  // namespace
}  // namespace capgate::imports
