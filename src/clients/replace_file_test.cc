#include "clients/replace_file.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "support/requirement.h"
#include "support/temp_directory.h"

namespace capgate::clients {
namespace {

namespace fs = std::filesystem;
using Kind = FileProblem::Kind;

constexpr uid_t ordinary = 12345;
constexpr std::size_t most = 1 << 20;

class ReplaceFile : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "mcp.json") const {
    return root_ / name;
  }
  std::string write(const std::string& text, mode_t mode = 0644,
                    const std::string& name = "mcp.json") const {
    std::ofstream(path(name)) << text;
    EXPECT_EQ(::chmod(path(name).c_str(), mode), 0);
    return path(name);
  }
  [[nodiscard]] static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& each : fs::directory_iterator(root_)) out.insert(each.path().filename());
    return out;
  }
  [[nodiscard]] static struct stat info(const std::string& path) {
    struct stat out{};
    EXPECT_EQ(::lstat(path.c_str(), &out), 0) << path;
    return out;
  }
  // Opens the file, lets `between` happen, replaces it; the kind of the failure, if it is one.
  std::optional<Kind> replace(
      const std::string& path, const std::function<void()>& between = [] {}) {
    const auto opened = open_file(path, most);
    if (!opened) return opened.error().kind;
    between();
    const auto done = replace_file(*opened, {.text = "new", .backup = opened->text});
    if (done) return std::nullopt;
    EXPECT_FALSE(done.error().help.empty());
    return done.error().kind;
  }

  const test::TempDirectory directory_;
  const fs::path root_ = directory_.path();
};

using Names = std::set<std::string>;

// True if `body` is true in a process that is an ordinary user's for good.
bool as_ordinary_user(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_one = ::getuid() != 0 || (::setgroups(0, nullptr) == 0 &&
                                            ::setresgid(ordinary, ordinary, ordinary) == 0 &&
                                            ::setresuid(ordinary, ordinary, ordinary) == 0);
    ::_exit(is_one && body() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(ReplaceFile, KeepsTheModeAndMakesABackup) {
  for (const mode_t mode : {0644U, 0600U, 0664U, 0640U}) {
    const std::string file = write("old", mode);
    EXPECT_EQ(replace(file), std::nullopt);
    EXPECT_EQ(read(file), "new");
    EXPECT_EQ(info(file).st_mode & 07777U, mode);
    EXPECT_EQ(read(file + ".capgate-backup"), "old");
    EXPECT_EQ(info(file + ".capgate-backup").st_mode & 07777U, 0600U);
    EXPECT_EQ(names(), (Names{"mcp.json", "mcp.json.capgate-backup"}));
  }
}

TEST_F(ReplaceFile, BackupsAreKeptApartUnlessTheyAreTheSame) {
  const std::string file = write("one");
  EXPECT_EQ(replace(file), std::nullopt);
  write("two");
  EXPECT_EQ(replace(file), std::nullopt);
  write("one");
  EXPECT_EQ(replace(file), std::nullopt);
  EXPECT_EQ(read(file + ".capgate-backup"), "one");
  EXPECT_EQ(read(file + ".capgate-backup-2"), "two");
  EXPECT_EQ(names().size(), 3U);
  remove_backups(*open_file(file, most), "two");
  EXPECT_EQ(names(), (Names{"mcp.json", "mcp.json.capgate-backup"}));
}

TEST_F(ReplaceFile, ABackupIsNotWrittenThroughALink) {
  const std::string file = write("old");
  write("precious", 0644, "other");
  fs::create_symlink(path("other"), file + ".capgate-backup");
  EXPECT_EQ(replace(file), std::nullopt);
  EXPECT_EQ(read(path("other")), "precious");
  EXPECT_EQ(read(file + ".capgate-backup-2"), "old");
}

TEST_F(ReplaceFile, TheLinkStaysAndItsTargetIsReplaced) {
  fs::create_directories(root_ / "dotfiles");
  write("old", 0600, "dotfiles/mcp.json");
  fs::create_symlink("dotfiles/mcp.json", path("link"));
  fs::create_symlink("link", path("again"));
  EXPECT_EQ(replace(path("again")), std::nullopt);
  EXPECT_TRUE(fs::is_symlink(path("again")));
  EXPECT_EQ(fs::read_symlink(path("link")), "dotfiles/mcp.json");
  EXPECT_EQ(read(path("dotfiles/mcp.json")), "new");
  EXPECT_TRUE(fs::exists(path("dotfiles/mcp.json.capgate-backup")));
}

TEST_F(ReplaceFile, AFileThatChangedIsLeftAsItIs) {
  const std::vector<std::function<void()>> changes = {
      [&] { std::ofstream(path()) << "changed"; },
      [&] {  // the same size at the same time: only its bytes tell
        const struct stat before = info(path());
        std::ofstream(path()) << "OLD";
        const timespec times[] = {before.st_atim, before.st_mtim};
        ASSERT_EQ(::utimensat(AT_FDCWD, path().c_str(), times, 0), 0);
      },
      [&] {  // another file with the same bytes
        write("old", 0644, "next");
        fs::rename(path("next"), path());
      },
      [&] { ASSERT_EQ(::chmod(path().c_str(), 0600), 0); },
      [&] { fs::remove(path()); },
      [&] {
        fs::remove(path());
        ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
      },
      [&] {
        fs::remove(path());
        fs::create_symlink("elsewhere", path());
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    fs::remove(path());
    write("old");
    std::string after;
    const auto kind = replace(path(), [&] {
      changes[i]();
      if (fs::is_regular_file(fs::symlink_status(path()))) after = read(path());
    });
    EXPECT_EQ(kind, i < 4 ? Kind::changed : kind) << i;
    EXPECT_TRUE(kind) << i;
    if (!after.empty()) EXPECT_EQ(read(path()), after) << i;
    for (const std::string& name : names()) EXPECT_FALSE(name.contains("capgate")) << i << name;
  }
}

TEST_F(ReplaceFile, ReadOnlyFilesAndDirectoriesAreRefused) {
  const std::string file = write("old", 0444);
  EXPECT_EQ(replace(file), Kind::unwritable);
  EXPECT_EQ(read(file), "old");
  EXPECT_EQ(names(), Names{"mcp.json"});
}

TEST_F(ReplaceFile, HardLinksAreRefused) {
  const std::string file = write("old");
  fs::create_hard_link(file, path("second"));
  EXPECT_EQ(replace(file), Kind::unwritable);
  EXPECT_EQ(names(), (Names{"mcp.json", "second"}));
}

TEST_F(ReplaceFile, WhatIsNoRegularFileIsRefused) {
  EXPECT_EQ(replace(path("nothing")), Kind::unreadable);
  EXPECT_EQ(replace(root_), Kind::unreadable);
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(replace(path("fifo")), Kind::unreadable);
  write(std::string(most + 1, 'x'), 0644, "large");
  EXPECT_EQ(replace(path("large")), Kind::unreadable);
}

TEST_F(ReplaceFile, AttributesOfTheUserAreKept) {
  const std::string file = write("old");
  CAPGATE_REQUIRE(::setxattr(file.c_str(), "user.note", "mine", 4, 0) == 0,
                  "the file system keeps no attributes of users");
  EXPECT_EQ(replace(file), std::nullopt);
  char value[8] = {};
  EXPECT_EQ(::getxattr(file.c_str(), "user.note", value, sizeof(value)), 4);
  EXPECT_STREQ(value, "mine");
}

TEST_F(ReplaceFile, RootKeepsTheOwner) {
  CAPGATE_REQUIRE(::getuid() == 0, "only root has files of others");
  const std::string file = write("old", 0640);
  ASSERT_EQ(::chown(file.c_str(), ordinary, 54321), 0);
  EXPECT_EQ(replace(file), std::nullopt);
  for (const std::string& each : {file, file + ".capgate-backup"}) {
    EXPECT_EQ(info(each).st_uid, ordinary);
    EXPECT_EQ(info(each).st_gid, 54321U);
  }
  EXPECT_EQ(info(file).st_mode & 07777U, 0640U);
}

TEST_F(ReplaceFile, AnOrdinaryUserReplacesTheirOwnFile) {
  CAPGATE_REQUIRE(::getuid() == 0, "needs root to become another user");
  const std::string file = write("old", 0600);
  ASSERT_EQ(::chown(root_.c_str(), ordinary, ordinary), 0);
  ASSERT_EQ(::chown(file.c_str(), ordinary, ordinary), 0);
  EXPECT_TRUE(as_ordinary_user([&] { return replace(file) == std::nullopt; }));
  EXPECT_EQ(read(file), "new");
  EXPECT_EQ(info(file).st_uid, ordinary);
}

TEST_F(ReplaceFile, AnOrdinaryUserIsRefusedWhereTheOwnerCannotBeKept) {
  CAPGATE_REQUIRE(::getuid() == 0, "needs root to become another user");
  const std::string file = write("old", 0666);  // root's, in a directory of everybody
  ASSERT_EQ(::chmod(root_.c_str(), 0777), 0);
  EXPECT_TRUE(as_ordinary_user([&] { return replace(file) == Kind::unwritable; }));
  EXPECT_EQ(read(file), "old");
  EXPECT_EQ(names(), Names{"mcp.json"});
}

TEST_F(ReplaceFile, AnOrdinaryUserIsRefusedInADirectoryOfOthers) {
  CAPGATE_REQUIRE(::getuid() == 0, "needs root to become another user");
  const std::string file = write("old", 0666);
  ASSERT_EQ(::chown(file.c_str(), ordinary, ordinary), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  EXPECT_TRUE(as_ordinary_user([&] { return replace(file) == Kind::unwritable; }));
  EXPECT_EQ(names(), Names{"mcp.json"});
}

TEST_F(ReplaceFile, CreateFileNeverReplaces) {
  const std::string file = path("a/b/new.yaml");
  EXPECT_TRUE(create_file(file, "one"));
  EXPECT_EQ(info(file).st_mode & 07777U, 0600U);
  EXPECT_EQ(info(path("a")).st_mode & 07777U, 0700U);
  EXPECT_FALSE(create_file(file, "two"));
  EXPECT_EQ(read(file), "one");
}

}  // namespace
}  // namespace capgate::clients
