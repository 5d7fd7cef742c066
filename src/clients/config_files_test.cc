#include "clients/config_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/format.h"
#include "base/ranges.h"
#include "support/temp_directory.h"

namespace capgate::clients {
namespace {

class ConfigFiles : public testing::Test {
 protected:
  static std::string entry(std::string_view name, std::string_view program) {
    return format("servers: {{{}: {{command: [{}]}}}}\n", name, program);
  }

  [[nodiscard]] Places places() const {
    return {.flag = {},
            .directory = directory_.directory("project"),
            .config = directory_.directory("config"),
            .system = directory_.directory("system"),
            .home = directory_.path("home")};
  }

  // The programs of the entries, in the order in which they were found.
  static std::string programs(std::string_view name, const Places& places) {
    const auto found = find_server(name, places);
    if (!found) return "problem in " + found.error().file;
    std::string out;
    for (const FoundServer& each : *found) out += each.server.command.front() + " ";
    return out;
  }

  test::TempDirectory directory_;
};

TEST_F(ConfigFiles, WhatIsNotThereIsNone) {
  EXPECT_EQ(programs("x", places()), "");
  EXPECT_TRUE(all_servers(places())->empty());
}

TEST_F(ConfigFiles, FlagProjectUserSystem) {
  Places all = places();
  all.flag = directory_.file("given.yaml", entry("x", "flag"));
  directory_.file("project/capgate.yaml", entry("x", "project"));
  directory_.file("config/capgate.yaml", entry("x", "user"));
  directory_.file("system/capgate.yaml", entry("x", "system"));
  EXPECT_EQ(programs("x", all), "flag project user system ");
  all.flag.clear();
  EXPECT_EQ(programs("x", all), "project user system ");
  ASSERT_EQ(::unlink(directory_.path("project/capgate.yaml").c_str()), 0);
  EXPECT_EQ(programs("x", all), "user system ");
  directory_.file("config/capgate.yaml", entry("y", "user"));
  EXPECT_EQ(programs("x", all), "system ");
  EXPECT_EQ(find_server("x", all)->front().layer, Layer::system);
}

TEST_F(ConfigFiles, OneFileAServer) {
  directory_.file("config/servers/x.yaml", entry("x", "own"));
  directory_.file("config/servers/y.yaml", entry("y", "other"));
  directory_.file("config/servers/notes.txt", "nothing of ours");
  EXPECT_EQ(programs("x", places()), "own ");
  const auto all = all_servers(places());
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].server.name, "x");
  EXPECT_EQ((*all)[1].file, directory_.path("config/servers/y.yaml"));
}

TEST_F(ConfigFiles, AFileOfOneServerSpeaksOfNoOther) {
  directory_.file("config/servers/x.yaml", entry("y", "other"));
  const auto found = find_server("x", places());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().file, directory_.path("config/servers/x.yaml"));
  ASSERT_EQ(found.error().diagnostics.size(), 1U);
  EXPECT_EQ(found.error().diagnostics.front().message, "this file is of the server x alone");
}

TEST_F(ConfigFiles, TwoOfOneLayerAreAProblem) {
  directory_.file("config/capgate.yaml", entry("x", "one"));
  directory_.file("config/servers/x.yaml", entry("x", "two"));
  for (const auto& found : {find_server("x", places()), all_servers(places())}) {
    ASSERT_FALSE(found);
    EXPECT_TRUE(found.error().diagnostics.front().message.starts_with("x stands in "));
  }
  EXPECT_EQ(programs("y", places()), "");
}

TEST_F(ConfigFiles, EveryMistakeOfAFileIsTold) {
  directory_.file("config/capgate.yaml", "servers: {x: {comand: [a], seal: 1}}");
  const auto found = find_server("y", places());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().diagnostics.size(), 2U);
  EXPECT_NE(found.error().text, nullptr);
  directory_.file("config/capgate.yaml", "servers: {");
  EXPECT_FALSE(find_server("y", places()));
}

TEST_F(ConfigFiles, AFlagMustBeThere) {
  Places all = places();
  all.flag = directory_.path("nothing.yaml");
  const auto found = find_server("x", all);
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().message.contains("No such file")) << found.error().message;
}

TEST_F(ConfigFiles, RelativePathsStartAtTheFile) {
  directory_.file("project/capgate.yaml", "servers: {x: {manifest: m.json}}");
  directory_.file("config/capgate.yaml", "servers: {x: {sandbox: {read: [data, ~/n]}}}");
  const auto found = find_server("x", places());
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[0].server.manifest, directory_.path("project/m.json"));
  EXPECT_EQ((*found)[1].server.capabilities,
            (std::vector<std::string>{"fs:read:" + directory_.path("config/data"),
                                      "fs:read:" + directory_.path("home/n")}));
}

// What a server could put into its workspace must neither block a run nor lead it elsewhere.
TEST_F(ConfigFiles, AProjectsFileIsAPlainOne) {
  const std::string file = directory_.path("project/capgate.yaml");
  const Places all = places();
  ASSERT_EQ(::symlink("/etc/shadow", file.c_str()), 0);
  const auto link = find_server("x", all);
  ASSERT_FALSE(link);
  EXPECT_TRUE(link.error().message.contains("symbolic link")) << link.error().message;
  ASSERT_EQ(::unlink(file.c_str()), 0);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(find_server("x", all));
  ASSERT_EQ(::unlink(file.c_str()), 0);
  ASSERT_EQ(::mkdir(file.c_str(), 0700), 0);
  EXPECT_FALSE(find_server("x", all));
}

TEST_F(ConfigFiles, AUsersFileMayBeALink) {
  directory_.file("dotfiles/capgate.yaml", entry("x", "linked"));
  const Places all = places();
  ASSERT_EQ(::symlink(directory_.path("dotfiles/capgate.yaml").c_str(),
                      directory_.path("config/capgate.yaml").c_str()),
            0);
  EXPECT_EQ(programs("x", all), "linked ");
}

TEST_F(ConfigFiles, WhereAnEntryWouldBeLookedForDecides) {
  Places all = places();
  all.flag = "/given.yaml";
  EXPECT_EQ(deciding_files(all),
            (std::vector<std::string>{directory_.path("config"), directory_.path("config/servers"),
                                      directory_.path("system"), "/given.yaml",
                                      directory_.path("config/capgate.yaml"),
                                      directory_.path("system/capgate.yaml")}));
  // Each of them may be a link.
  const std::string one = directory_.file("config/servers/x.yaml", "broken: [");
  const auto files = deciding_files(all);
  EXPECT_TRUE(contains(files, one));
  EXPECT_FALSE(contains(files, project_file(all)));
}

TEST_F(ConfigFiles, WhatIsBrokenHasNoEntryThatCouldBeRead) {
  directory_.file("config/capgate.yaml", entry("a", "one"));
  directory_.file("config/servers/b.yaml", entry("b", "two"));
  directory_.file("config/servers/c.yaml", "servers: [");
  directory_.file("system/capgate.yaml", entry("a", "three"));
  directory_.file("project/capgate.yaml", entry("d", "four"));
  std::string seen;
  for (const FoundServer& each : readable_servers(places())) {
    seen += each.server.name + "=" + each.server.command.front() + " ";
  }
  EXPECT_EQ(seen, "a=one a=three b=two ");
  EXPECT_FALSE(all_servers(places()).has_value());
  directory_.file("config/capgate.yaml", "servers: [");
  EXPECT_EQ(readable_servers(places()).size(), 2U);
}

}  // namespace
}  // namespace capgate::clients
