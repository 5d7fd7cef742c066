#include "sys/put_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace capgate::sys {
namespace {

namespace fs = std::filesystem;

class PutFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "capgate-put-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  [[nodiscard]] std::string file() const { return root_ + "/file"; }
  [[nodiscard]] std::string beside() const { return file() + ".new-" + std::to_string(::getpid()); }
  static void write(const std::string& path, std::string_view text) { std::ofstream(path) << text; }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }

  std::string root_;
};

TEST_F(PutFileTest, MakesAndReplaces) {
  ASSERT_TRUE(put_file(file(), "one", {.mode = 0600}));
  EXPECT_EQ(read(file()), "one");
  struct stat info{};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
  ASSERT_TRUE(put_file(file(), "two", {.mode = 0600}));
  EXPECT_EQ(read(file()), "two");
  EXPECT_EQ(count(), 1);
}

TEST_F(PutFileTest, WhatAKilledProcessLeftIsNoObstacle) {
  for (const bool replaces : {true, false}) {
    write(beside(), "a part of it");
    fs::remove(file());
    ASSERT_TRUE(put_file(file(), "whole", {.replaces = replaces}));
    EXPECT_EQ(read(file()), "whole");
    EXPECT_EQ(count(), 1);
  }
  // A link there leads nowhere of ours.
  write(root_ + "/other", "other");
  fs::create_symlink("other", beside());
  ASSERT_TRUE(put_file(file(), "again", {}));
  EXPECT_EQ(read(root_ + "/other"), "other");
}

TEST_F(PutFileTest, AFileThatExistsStaysUnlessItIsReplaced) {
  write(file(), "there");
  const auto done = put_file(file(), "new", {.replaces = false});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().err, EEXIST);
  EXPECT_EQ(read(file()), "there");
  EXPECT_EQ(count(), 1);
}

TEST_F(PutFileTest, AFailureLeavesNothing) {
  fs::create_directory(file());
  EXPECT_FALSE(put_file(file(), "new", {}));
  EXPECT_EQ(count(), 1);
  const auto done = put_file(root_ + "/none/file", "new", {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().err, ENOENT);
}

}  // namespace
}  // namespace capgate::sys
