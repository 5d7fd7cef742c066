#include "clients/lacking.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "clients/catalog.h"
#include "core/grammar.h"
#include "support/temp_directory.h"

namespace capgate::clients {
namespace {

using Words = std::vector<std::string>;

const std::string modules = "/srv/node_modules/";

core::Manifest having(const Words& capabilities) {
  core::Manifest out;
  for (const std::string& text : capabilities) {
    const auto parsed = core::parse_capability(text, {});
    EXPECT_TRUE(parsed) << text;
    out.declared.push_back({.capability = parsed->front(), .where = {}});
  }
  return out;
}

Start start(Words command, std::vector<std::string_view> environment = {}) {
  return {.command = std::move(command),
          .environment = std::move(environment),
          .home = "/home/alice",
          .directory = "/work"};
}

std::string lacking(const Words& capabilities, const Start& started) {
  const sandbox::Lacking found = find_lacking(having(capabilities), started);
  return join(found.capabilities, " ");
}

const Words postgres = {"node", modules + "@modelcontextprotocol/server-postgres/dist/index.js",
                        "postgresql://u:pw@db.test/x"};

TEST(FindLacking, NamesWhatTheEntryHasAndThePolicyHasNot) {
  EXPECT_EQ(lacking({}, start(postgres)), "net:connect:db.test:5432");
  EXPECT_EQ(lacking({"net:connect:a.test:5432"}, start(postgres)), "net:connect:db.test:5432");
  EXPECT_EQ(find_lacking({}, start(postgres)).entry, "postgres");
}

TEST(FindLacking, NothingIsLackingWhereMoreIsGranted) {
  EXPECT_EQ(lacking({"net:connect:db.test:5432"}, start(postgres)), "");
  EXPECT_EQ(lacking({"net:connect:*.test"}, start(postgres)), "");
  const Words files = {"npx", "-y", "@modelcontextprotocol/server-filesystem", "/w/a"};
  EXPECT_EQ(lacking({"fs:write:/w/**"}, start(files)), "");
  EXPECT_EQ(lacking({"fs:read:/w/**"}, start(files)), "fs:write:/w/a/**");
}

TEST(FindLacking, EnvironmentBinds) {
  const Words git = {"npx", "@cyanheads/git-mcp-server"};
  EXPECT_EQ(lacking({"fs:write:/srv/**", "env:read:GIT_BASE_DIR", "net:connect:*"},
                    start(git, {"GIT_BASE_DIR=/srv/repo"})),
            "exec:spawn:git");
  // An optional variable counts where it is set.
  EXPECT_EQ(lacking({"fs:write:/srv/**", "env:read:GIT_BASE_DIR", "net:connect:*"},
                    start(git, {"GIT_BASE_DIR=/srv/repo", "GIT_EMAIL=a@b.test"})),
            "exec:spawn:git env:read:GIT_EMAIL");
}

TEST(FindLacking, AVariableThatIsHeldInAnotherWayIsNotLacking) {
  const Words brave = {"npx", "@modelcontextprotocol/server-brave-search"};
  const std::string net = "net:connect:api.search.brave.com:443";
  const std::string sealed =
      "env:inject:BRAVE_API_KEY?as=header:x-subscription-token&to=api.search.brave.com:443";
  EXPECT_EQ(lacking({net}, start(brave)), sealed);
  EXPECT_EQ(lacking({net}, start(brave, {"BRAVE_API_KEY=x"})), sealed);
  EXPECT_EQ(lacking({net, "env:inject:BRAVE_API_KEY"}, start(brave)), "");
  EXPECT_EQ(lacking({net, "env:read:OTHER"}, start(brave)), sealed);
}

TEST(FindLacking, TheTimeCannotBeWithheld) {
  EXPECT_EQ(lacking({}, start({"npx", "time-mcp"})), "clock:tzdata");
}

TEST(FindLacking, ThePackageIsFoundByTheProgramOrTheScript) {
  const std::string script = modules + "time-mcp/dist/index.js";
  for (const Words& command :
       {Words{script}, Words{"node", script}, Words{"node", "--enable-source-maps", script, "x"},
        Words{"/opt/node_modules/node/bin/node", script},
        Words{"node", "/a/node_modules/other/node_modules/time-mcp/x.js"}}) {
    EXPECT_EQ(lacking({}, start(command)), "clock:tzdata") << join(command, " ");
  }
}

TEST(FindLacking, AnotherPackageIsNotGuessed) {
  for (const Words& command :
       {Words{}, Words{"node"}, Words{"node", "time-mcp"}, Words{"node", "/srv/time-mcp/index.js"},
        Words{"node", modules + "time-mcp-plus/dist/index.js"}, Words{"node", modules + "time-mcp"},
        Words{"node", modules + "@other/time-mcp/index.js"}, Words{"node", modules + "@other"},
        Words{"node", "server.js", modules + "time-mcp/dist/index.js"}, Words{"uvx", "time-mcp"}}) {
    EXPECT_TRUE(find_lacking({}, start(command)).entry.empty()) << join(command, " ");
  }
}

TEST(FindLacking, LinksAreFollowed) {
  const test::TempDirectory directory;
  directory.file("node_modules/time-mcp/dist/index.js", "");
  directory.directory("node_modules/.bin");
  const std::string program =
      directory.link("node_modules/.bin/time-mcp", "../time-mcp/dist/index.js");
  EXPECT_EQ(lacking({}, start({program})), "clock:tzdata");
}

// What binds the variables is missing: another message says so, and nothing here is known.
TEST(FindLacking, WhatIsNotBoundIsNotGuessed) {
  EXPECT_EQ(lacking({}, start({postgres[0], postgres[1]})), "");
}

// Each entry is found by its packages, as find_entry() finds it.
TEST(FindLacking, EveryEntryIsKnown) {
  for (const CatalogEntry& entry : catalog()) {
    if (!entry.variables.empty() || entry.packages[0].registry != Package::Registry::npm) continue;
    EXPECT_EQ(find_lacking({}, start({"npx", entry.packages[0].name})).entry, entry.name);
  }
}

}  // namespace
}  // namespace capgate::clients
