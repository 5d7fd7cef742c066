#include "import/mcpb.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "text/json.h"

namespace capgate::imports {
namespace {

// The samples (tests/import) show what is read; here is what is refused, and what is easily wrong.

Checked<Imported> import(const std::string& json) {
  const auto document = text::parse_json(json);
  if (!document) return std::unexpected(document.error());
  EXPECT_TRUE(is_mcpb(*document)) << json;
  return read_mcpb(*document,
                   {.file = "x.json", .directory = "", .home = "/home/me", .server = ""});
}

// `more` are further members of the root; `config` those of mcp_config.
std::string manifest(std::string_view more = "", std::string_view config = "",
                     std::string_view version = "0.3") {
  return format(
      R"({{"manifest_version": "{}", "name": "n", "version": "1", "server": {{"type": "node",)"
      R"( "entry_point": "i.js", "mcp_config": {{"command": "node"{}}}}}{}}})",
      version, config, more);
}

std::string mistakes(const std::string& json) {
  const auto imported = import(json);
  if (imported) return "read";
  std::string out;
  for (const Diagnostic& mistake : imported.error()) {
    EXPECT_LE(mistake.where.end, json.size());
    EXPECT_FALSE(mistake.help.empty()) << mistake.message;
    out += format("{} {}\n", code_name(mistake.code), mistake.message);
  }
  return out;
}

std::string granted(const std::string& json) {
  const auto imported = import(json);
  return imported ? join(imported->capabilities, " ") : mistakes(json);
}

bool tells(const std::string& json, Loss::Kind kind, std::string_view subject,
           std::string_view words) {
  const auto imported = import(json);
  return imported && std::ranges::any_of(imported->losses, [&](const Loss& loss) {
           return loss.kind == kind && loss.subject == subject && loss.message.contains(words);
         });
}

TEST(Mcpb, OtherVersionsAreRefusedByName) {
  for (const char* version : {"0.1", "0.2", "0.3", "0.4"}) {
    EXPECT_EQ(mistakes(manifest("", "", version)), "read") << version;
  }
  EXPECT_EQ(mistakes(manifest("", "", "0.5")),
            "IMPORT_VERSION version \"0.5\" of MCPB is not known\n");
  EXPECT_EQ(mistakes(manifest("", "", "1.0")),
            "IMPORT_VERSION version \"1.0\" of MCPB is not known\n");
  EXPECT_EQ(mistakes(R"({"manifest_version": 3, "name": "an extension of a browser"})"),
            "IMPORT_VERSION version \"3\" of MCPB is not known\n");
  EXPECT_EQ(mistakes(R"({"manifest_version": ["0.3"]})"),
            "IMPORT_VERSION the version of MCPB is a text\n");
  EXPECT_EQ(mistakes(manifest(R"(, "dxt_version": "0.1")")),
            "IMPORT_VERSION manifest_version is 0.3 and dxt_version is 0.1\n");
  EXPECT_EQ(mistakes(manifest(R"(, "dxt_version": "0.3")")), "read");
  EXPECT_EQ(mistakes(manifest(R"(, "dxt_version": "7")")),
            "IMPORT_VERSION version \"7\" of MCPB is not known\n");
}

TEST(Mcpb, EveryMistakeIsTold) {
  EXPECT_EQ(mistakes(R"({"dxt_version": "0.1", "name": "", "version": 1, "tools": {},)"
                     R"( "server": {"type": "uv", "entry_point": "x"}})"),
            "IMPORT_SHAPE name is empty\n"
            "IMPORT_SHAPE version is a text\n"
            "IMPORT_SHAPE tools is a list\n"
            "IMPORT_SHAPE version 0.1 has no server of type \"uv\"\n");
  EXPECT_EQ(mistakes(R"({"dxt_version": "0.1"})"),
            "IMPORT_SHAPE name is missing\nIMPORT_SHAPE server is missing\n"
            "IMPORT_SHAPE version is missing\n");
  EXPECT_EQ(mistakes(R"({"dxt_version": "0.1", "name": "a\nb", "version": "1", "server": "node"})"),
            "IMPORT_SHAPE control character in name\nIMPORT_SHAPE server is an object\n");
  EXPECT_EQ(mistakes(manifest("", R"(, "args": [1], "env": {"A": true})")),
            "IMPORT_SHAPE an argument is a text\nIMPORT_SHAPE a variable's value is a text\n");
  EXPECT_EQ(mistakes(manifest(R"(, "user_config": {"a": {"type": "socket"}, "b": 1})")),
            "IMPORT_SHAPE an option has no type \"socket\"\n"
            "IMPORT_SHAPE an option of user_config is an object\n");
  EXPECT_EQ(mistakes(manifest(R"(, "tools": ["search"])")), "IMPORT_SHAPE a tool is an object\n");
}

TEST(Mcpb, SecretsAreInjectedAndOthersRead) {
  const std::string options =
      R"(, "user_config": {"token": {"type": "string", "sensitive": true}, "name": {"type": "string"}})";
  EXPECT_EQ(granted(manifest(options, R"(, "env": {"A": "Bearer ${user_config.token}", )"
                                      R"("B": "${user_config.name}", "C": "constant"})")),
            "env:inject:A env:read:B env:read:C fs:read:${BUNDLE}/**");
  EXPECT_TRUE(tells(manifest(options, R"(, "args": ["--token=${user_config.token}"])"),
                    Loss::Kind::dropped, "user_config.token", "stands in the command line"));
  EXPECT_TRUE(tells(manifest(options), Loss::Kind::dropped, "user_config.token",
                    "nothing of the server gets this option"));
}

// A manifest holds no values: with the name alone the server would get the caller's own.
TEST(Mcpb, AValueOfTheBundleIsNoSecretOfTheCaller) {
  const std::string text = manifest("", R"(, "env": {"AWS_SECRET_ACCESS_KEY": "unused", )"
                                        R"("API_TOKEN": "${HOME}", "LEVEL": "debug"})");
  EXPECT_EQ(granted(text), "env:read:LEVEL fs:read:${BUNDLE}/**");
  EXPECT_TRUE(tells(text, Loss::Kind::dropped, "server.mcp_config.env.AWS_SECRET_ACCESS_KEY",
                    "your own secret"));
  EXPECT_TRUE(tells(text, Loss::Kind::assumed, "server.mcp_config.env.LEVEL", "YOUR value"));
}

// What the server never gets it cannot use; and what is chosen is read, never silently written.
TEST(Mcpb, ChosenPathsAreReadWhereTheServerGetsThem) {
  const std::string options =
      R"(, "user_config": {"bundle": {"type": "directory"}, "f": {"type": "file", "multiple": true}})";
  EXPECT_EQ(granted(manifest(options)), "fs:read:${BUNDLE}/**");
  const std::string used =
      manifest(options, R"(, "args": ["${user_config.bundle}"], "env": {"F": "${user_config.f}"})");
  EXPECT_EQ(granted(used), "env:read:F fs:read:${BUNDLE_2}/** fs:read:${BUNDLE}/** fs:read:${F}");
  EXPECT_TRUE(tells(used, Loss::Kind::assumed, "user_config.f", "once for each path"));
  EXPECT_TRUE(tells(used, Loss::Kind::assumed, "user_config.bundle", "reading is all it gets"));
}

TEST(Mcpb, TheLinuxPartReplacesTheRest) {
  const auto imported = import(manifest(
      "", R"(, "args": ["a"], "env": {"A": "1"}, "platform_overrides": {"win32": {"command": "w"},)"
          R"( "linux": {"command": "l", "env": {"B": "1"}}})"));
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->command, (std::vector<std::string>{"l", "a"}));
  EXPECT_EQ(imported->capabilities,
            (std::vector<std::string>{"env:read:B", "fs:read:${BUNDLE}/**"}));
}

TEST(Mcpb, PathsOfTheHomeAreReadAndTheHomeItselfIsNot) {
  EXPECT_EQ(granted(manifest("", R"(, "args": ["${DOCUMENTS}${/}a", "--x=${HOME}/b:c"])")),
            "fs:read:\"${HOME}/b:c\" fs:read:${BUNDLE}/** fs:read:${HOME}/Documents/a");
  EXPECT_EQ(granted(manifest("", R"(, "args": ["${HOME}", "${HOME}/../other"])")),
            "fs:read:${BUNDLE}/**");
  // What looks like a refinement is a part of a name, or nothing.
  EXPECT_EQ(granted(manifest("", R"(, "args": ["${HOME}/.bashrc?unsafe=true"])")),
            "fs:read:\"${HOME}/.bashrc?unsafe=true\" fs:read:${BUNDLE}/**");
  EXPECT_EQ(granted(manifest("", R"(, "args": ["${HOME}/a\"?b"])")), "fs:read:${BUNDLE}/**");
}

TEST(Mcpb, WhatIsNotKnownGrantsNothingAndIsSaid) {
  EXPECT_TRUE(tells(manifest(R"(, "filesystem_access": {"write": ["/"]})"), Loss::Kind::dropped,
                    "filesystem_access", "this key is not known"));
  EXPECT_TRUE(tells(manifest("", R"(, "cwd": "/")"), Loss::Kind::dropped, "server.mcp_config.cwd",
                    "this key is not known"));
  EXPECT_TRUE(tells(manifest("", R"(, "args": ["${user_config.nobody}"])"), Loss::Kind::dropped,
                    "user_config", "\"nobody\" is used, but there is no such option"));
  EXPECT_TRUE(tells(manifest(), Loss::Kind::unsaid, "net", "it reaches none"));
  EXPECT_TRUE(tells(manifest("", "", "0.4"), Loss::Kind::unsaid, "exec", "starts none"));
}

TEST(Mcpb, OwnPermissionsAreTakenAndCheckedLikeAnyOther) {
  const auto meta = [](std::string_view inside) {
    return manifest(format(R"(, "_meta": {{"dev.capgate/permissions": {}}})", inside));
  };
  EXPECT_EQ(granted(meta(R"({"schemaVersion": 1, "manifest": {"name": "m", "version": "2",)"
                         R"( "serverCapabilities": ["net:connect:A.example:443"], "tools": []}})")),
            "net:connect:a.example:443");
  EXPECT_EQ(mistakes(meta(R"({"schemaVersion": 2, "manifest": {}})")),
            "IMPORT_VERSION this form of dev.capgate/permissions is not known\n");
  EXPECT_EQ(mistakes(meta("7")),
            "IMPORT_VERSION this form of dev.capgate/permissions is not known\n");
  EXPECT_EQ(mistakes(meta(R"({"schemaVersion": 1})")), "IMPORT_SHAPE manifest is missing\n");
  const std::string bad = meta(R"({"schemaVersion": 1, "manifest": {"name": "m", "version": "2",)"
                               R"( "serverCapabilities": ["fs:read:/"], "tools": []}})");
  const auto imported = import(bad);
  ASSERT_FALSE(imported);
  const Span where = imported.error().front().where;
  EXPECT_EQ(bad.substr(where.begin, where.end - where.begin), "fs:read:/");
}

}  // namespace
}  // namespace capgate::imports
