#include "sys/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "support/temp_directory.h"

namespace capgate::sys {
namespace {

using test::TempDirectory;

TEST(ReadFile, StopsOneByteAfterTheMost) {
  const TempDirectory place;
  const std::string file = place.file("file", "12345678");
  EXPECT_EQ(read_file(file, 8).value(), "12345678");
  EXPECT_EQ(read_file(file, 4).value(), "12345");
}

TEST(ReadFile, ADirectoryIsAnError) {
  const TempDirectory place;
  const auto read = read_file(place.path(), 8);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().err, EISDIR);
}

// The kernel's own files have no size.
TEST(ReadFile, ReadsFilesWithoutASize) {
  EXPECT_EQ(read_file("/proc/self/comm", 100).value().back(), '\n');
}

// Some of them give everything at once or never: numbers below /proc/sys.
TEST(ReadFile, ReadsNumbersOfTheKernelWhole) {
  const std::string range = read_file("/proc/sys/net/ipv4/ip_local_port_range", 100).value();
  EXPECT_TRUE(range.contains('\t') && range.ends_with('\n')) << range;
}

class MakeDirectories : public testing::Test {
 protected:
  static mode_t mode_of(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  TempDirectory place;
};

TEST_F(MakeDirectories, AreTheOwnersAlone) {
  const mode_t before = ::umask(0);
  const auto made = make_directories(place.path("a/b"));
  ::umask(before);
  ASSERT_TRUE(made);
  EXPECT_EQ(mode_of(place.path("a")), 0700U);
  EXPECT_EQ(mode_of(place.path("a/b")), 0700U);
}

TEST_F(MakeDirectories, ThatAreThereStay) {
  place.directory("a");
  EXPECT_TRUE(make_directories(place.path("a/b")));
  EXPECT_TRUE(make_directories(place.path("a/b")));
}

// Whoever can write a directory above could lead secrets elsewhere.
TEST_F(MakeDirectories, FollowNoLinkThatIsNotRoots) {
  place.directory("elsewhere");
  place.link("link", "elsewhere");
  if (::geteuid() == 0) {
    EXPECT_TRUE(make_directories(place.path("link/b"))) << "root's own";
    ASSERT_EQ(::lchown(place.path("link").c_str(), 12345, 12345), 0);
  }
  for (const char* path : {"link", "link/c"}) {
    const auto made = make_directories(place.path(path));
    ASSERT_FALSE(made) << path;
    EXPECT_EQ(made.error().err, ELOOP);
  }
  EXPECT_FALSE(std::filesystem::exists(place.path("elsewhere/c")));
}

TEST_F(MakeDirectories, AFileOnTheWayIsAnError) {
  place.file("file", "");
  EXPECT_FALSE(make_directories(place.path("file/b")));
}

}  // namespace
}  // namespace capgate::sys
