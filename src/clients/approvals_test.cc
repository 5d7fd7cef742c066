#include "clients/approvals.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temp_directory.h"

namespace capgate::clients {
namespace {

Approval approval(std::string directory = "/srv/project", std::string server = "x") {
  return {.directory = std::move(directory),
          .server = std::move(server),
          .hash = "sha256:0",
          .policy = {"fs:read:/a", "net:connect:b.example:443"},
          .date = "2026-11-15T12:00:00Z"};
}

TEST(Approvals, WhatIsKeptIsFound) {
  const test::TempDirectory directory;
  const Approvals approvals(directory.path("state/approved"));
  EXPECT_FALSE(approvals.find("/srv/project", "x")->has_value());
  ASSERT_TRUE(approvals.keep(approval()));
  EXPECT_EQ(approvals.find("/srv/project", "x")->value(), approval());
  EXPECT_FALSE(approvals.find("/srv/project", "y")->has_value());
  EXPECT_FALSE(approvals.find("/srv/projec", "tx")->has_value());
  struct stat info{};
  ASSERT_EQ(::stat(approvals.file_of("/srv/project", "x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(Approvals, ANewOneReplacesTheOld) {
  const test::TempDirectory directory;
  const Approvals approvals(directory.path("approved"));
  ASSERT_TRUE(approvals.keep(approval()));
  Approval next = approval();
  next.hash = "sha256:1";
  ASSERT_TRUE(approvals.keep(next));
  EXPECT_EQ(approvals.find("/srv/project", "x")->value(), next);
  EXPECT_EQ(approvals.all()->size(), 1U);
}

TEST(Approvals, AreListedAndRevoked) {
  const test::TempDirectory directory;
  const Approvals approvals(directory.path("approved"));
  EXPECT_TRUE(approvals.all()->empty());
  for (const char* name : {"z", "y"}) ASSERT_TRUE(approvals.keep(approval("/b", name)));
  ASSERT_TRUE(approvals.keep(approval("/a", "z")));
  const auto all = approvals.all();
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ((*all)[0].directory, "/a");
  EXPECT_EQ((*all)[1].server, "y");
  EXPECT_EQ(approvals.revoke("/b", "y"), true);
  EXPECT_EQ(approvals.revoke("/b", "y"), false);
  EXPECT_EQ(approvals.all()->size(), 2U);
}

TEST(Approvals, ACopyForAnotherProjectIsNone) {
  const test::TempDirectory directory;
  const Approvals approvals(directory.path("approved"));
  ASSERT_TRUE(approvals.keep(approval()));
  std::filesystem::copy(approvals.file_of("/srv/project", "x"), approvals.file_of("/other", "x"));
  const auto found = approvals.find("/other", "x");
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().contains("of another project")) << found.error();
}

TEST(Approvals, ADamagedFileIsAProblem) {
  const test::TempDirectory directory;
  const Approvals approvals(directory.path("approved"));
  ASSERT_TRUE(approvals.keep(approval()));
  const std::string file = approvals.file_of("/srv/project", "x");
  for (const char* text : {"", "{}", "[]", R"({"schemaVersion": 2})",
                           R"({"schemaVersion": 1, "directory": "/srv/project", "server": "x",
                               "hash": "h", "date": "d", "policy": [1]})"}) {
    directory.file(file.substr(directory.path().size() + 1), text);
    EXPECT_FALSE(approvals.find("/srv/project", "x")) << text;
  }
}

TEST(ApprovalHash, EverythingThatDecidesChangesIt) {
  const ServerConfig base{.name = "x",
                          .command = {"a", "b"},
                          .manifest = "/m.json",
                          .capabilities = {"fs:read:/a"},
                          .variables = {{.name = "A", .values = {"1"}}},
                          .secrets = {"T=env:T"}};
  const std::string hash = approval_hash(base, "/p", "text");
  EXPECT_EQ(approval_hash(base, "/p", "text"), hash);
  EXPECT_NE(approval_hash(base, "/q", "text"), hash);
  EXPECT_NE(approval_hash(base, "/p", "other"), hash);
  const auto differs = [&](auto change) {
    ServerConfig other = base;
    change(other);
    EXPECT_NE(approval_hash(other, "/p", "text"), hash);
  };
  differs([](ServerConfig& c) { c.name = "y"; });
  differs([](ServerConfig& c) { c.command = {"a b"}; });
  differs([](ServerConfig& c) { c.manifest = "/n.json"; });
  differs([](ServerConfig& c) { c.capabilities = {"fs:write:/a"}; });
  differs([](ServerConfig& c) { c.variables[0].values = {"2"}; });
  differs([](ServerConfig& c) { c.variables[0].name = "B"; });
  differs([](ServerConfig& c) { c.secrets = {"T=env:U"}; });
  differs([](ServerConfig& c) { c.seal = true; });
}

TEST(Approvals, KeepAPinAndReadOldFiles) {
  const test::TempDirectory directory;
  const Approvals approvals(directory.path("approved"));
  Approval approval{.directory = "/p", .server = "x", .hash = "h", .policy = {}, .date = "d"};
  ASSERT_TRUE(approvals.keep(approval));
  EXPECT_EQ(approvals.find("/p", "x")->value(), approval);
  approval.pin = Pin{.server = "x",
                     .manifest_hash = "sha256:" + std::string(64, 'a'),
                     .policy = {"fs:read:/srv"},
                     .shared = {},
                     .grants = {},
                     .command = {"a", "b"},
                     .package = {},
                     .protocol = "2025-06-18",
                     .tools = std::vector<PinnedTool>{}};
  ASSERT_TRUE(approvals.keep(approval));
  EXPECT_EQ(approvals.find("/p", "x")->value(), approval);
  // Words of a server that could not be read again.
  Approval deep = approval;
  std::string schema = "1";
  for (int i = 0; i < 127; ++i) schema = "[" + schema + "]";
  deep.pin->tools->push_back({.name = "t",
                              .title = "",
                              .description = "",
                              .input_schema = schema,
                              .output_schema = "",
                              .annotations = ""});
  EXPECT_FALSE(approvals.keep(deep));
  EXPECT_EQ(approvals.find("/p", "x")->value(), approval);
  EXPECT_EQ(approvals.mark_of("/tree"), "");
  approvals.keep_mark("/tree", "a mark");
  EXPECT_EQ(approvals.mark_of("/tree"), "a mark");
  EXPECT_EQ(approvals.all()->size(), 1U);
  EXPECT_TRUE(*approvals.revoke("/p", "x"));
}

}  // namespace
}  // namespace capgate::clients
