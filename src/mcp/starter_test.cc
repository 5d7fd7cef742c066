#include "mcp/starter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::mcp {
namespace {

using text::Kind;
using text::Value;

std::vector<std::string> suggested(const ToolInfo& tool) {
  std::vector<std::string> out;
  for (const Suggestion& suggestion : suggest(tool)) out.push_back(suggestion.capability);
  return out;
}

using Words = std::vector<std::string>;

TEST(Suggest, TheHintsDecide) {
  EXPECT_EQ(suggested({.name = "x", .read_only = true, .open_world = false}),
            Words{"fs:read:/DIRECTORY/**"});
  EXPECT_EQ(suggested({.name = "x", .read_only = true}),
            (Words{"fs:read:/DIRECTORY/**", "net:connect:HOST:443"}));
  EXPECT_EQ(suggested({.name = "x"}), (Words{"fs:write:/DIRECTORY/**", "net:connect:HOST:443"}));
}

TEST(Suggest, TheNameDecidesToo) {
  const ToolInfo closed{.read_only = true, .open_world = false};
  const auto with_name = [&](const char* name) {
    ToolInfo tool = closed;
    tool.name = name;
    Words out = suggested(tool);
    out.erase(out.begin());
    return out;
  };
  EXPECT_EQ(with_name("web_search"), Words{"net:connect:HOST:443"});
  EXPECT_EQ(with_name("runCommand"), Words{"exec:spawn:PROGRAM"});
  EXPECT_EQ(with_name("git-status"), Words{"exec:spawn:git"});
  EXPECT_EQ(with_name("get.time"), Words{"clock:tzdata"});
  EXPECT_EQ(with_name("write_file"), Words{"fs:write:/DIRECTORY/**"});
  EXPECT_EQ(with_name("overwriteable"), Words{});
}

TEST(CommentText, NothingLeavesTheLine) {
  EXPECT_EQ(comment_text("first\nsecond"), "first");
  EXPECT_EQ(comment_text("a\r\tb"), "a  b");
  EXPECT_EQ(comment_text("a\u2028b\u2029c\u0085d"), "a?b?c?d");
  EXPECT_EQ(comment_text("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(comment_text("\u00e4"), "\u00e4");
  EXPECT_LT(comment_text(std::string(10'000, 'x')).size(), 100U);
}

void expect_manifest(Value root, const Starter& starter) {
  ASSERT_TRUE(root.is(Kind::object));
  EXPECT_EQ(root.find("name")->text(), starter.name);
  EXPECT_EQ(root.find("version")->text(), starter.version);
  EXPECT_TRUE(root.find("version")->is(Kind::string));
  EXPECT_EQ(root.find("serverCapabilities")->count(), 0U);
  const auto tools = root.find("tools");
  ASSERT_EQ(tools->count(), starter.server.tools.size());
  std::size_t i = 0;
  for (const Value tool : tools->elements()) {
    EXPECT_EQ(tool.count(), 2U);
    EXPECT_EQ(tool.find("name")->text(), starter.server.tools[i++].name);
    EXPECT_TRUE(tool.find("name")->is(Kind::string));
    EXPECT_TRUE(tool.find("capabilities")->is(Kind::array));
    EXPECT_EQ(tool.find("capabilities")->count(), 0U);
  }
}

void expect_manifests(const Starter& starter) {
  const auto yaml = text::parse_yaml(starter_yaml(starter));
  ASSERT_TRUE(yaml.has_value()) << yaml.error().front().message << "\n" << starter_yaml(starter);
  expect_manifest(yaml->root(), starter);
  const auto json = text::parse_json(starter_json(starter));
  ASSERT_TRUE(json.has_value());
  expect_manifest(json->root(), starter);
}

TEST(Starter, BothFormsHoldTheToolsAndNothingElse) {
  ServerTools server{.protocol = "2025-11-25"};
  expect_manifests({.server = server, .name = "none", .version = "1", .file = "f.yaml"});
  for (const char* name : {"read", "true", "1.0", "- x", "a: b", "#", "\"", "\\", "\u00e4\u2028"}) {
    server.tools.push_back({.name = name, .description = "say: [\"x\"]"});
  }
  expect_manifests({.server = server, .name = "a \"b\"", .version = "1.0", .file = "f.yaml"});
}

TEST(Starter, TheCommentsSuggest) {
  const ServerTools server{
      .protocol = "2025-11-25",
      .tools = {{.name = "get", .description = "Gets it.", .read_only = true}}};
  const std::string yaml =
      starter_yaml({.server = server, .name = "n", .version = "1", .file = "f.yaml"});
  EXPECT_TRUE(yaml.contains("# Gets it.\n")) << yaml;
  EXPECT_TRUE(yaml.contains("#  - fs:read:/DIRECTORY/**")) << yaml;
  EXPECT_TRUE(yaml.contains("capgate check f.yaml")) << yaml;
}

// The server chooses the words: none of them becomes a line of the manifest.
RC_GTEST_PROP(Starter, NoTextBreaksOut, ()) {
  const auto piece = rc::gen::element<std::string>(
      "\n", "\r", "\t", "\u2028", "\u2029", "\u0085", "\ufeff", "\uffff", "\u202e", "\x7f", "\x1b",
      "serverCapabilities: [x]", "# ", "- ", "\"", "'", "\\", "{", "}", " ", "x", "\U0001f600");
  const auto text =
      rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                   [](const std::vector<std::string>& pieces) { return join(pieces, ""); });
  const std::string words = *text;
  const ServerTools server{
      .protocol = words,
      .tools = {{.name = "a" + words, .title = words, .description = words}, {.name = "b"}}};
  const Starter starter{
      .server = server, .name = "n" + words, .version = "v" + words, .file = words};
  const auto yaml = text::parse_yaml(starter_yaml(starter));
  RC_ASSERT(yaml.has_value());
  RC_ASSERT(yaml->root().count() == 4U);
  expect_manifest(yaml->root(), starter);
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace capgate::mcp
