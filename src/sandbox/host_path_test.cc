#include "sandbox/host_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "support/requirement.h"
#include "support/temp_directory.h"

namespace capgate::sandbox {
namespace {

using test::TempDirectory;

constexpr uid_t somebody = 12345;

// Root makes links that are followed, so it gives them away; anyone else's are its own already.
void belongs_to_a_user(const std::string& link) {
  if (::geteuid() == 0) {
    ASSERT_EQ(::lchown(link.c_str(), somebody, somebody), 0);
  }
}

TEST(HostPath, APlainPathIsKnownByItsIdentity) {
  const TempDirectory directory;
  const std::string file = directory.file("a/b/file", "text");
  const auto opened = open_host_path(file);
  ASSERT_TRUE(opened) << opened.error().message;
  struct stat info{};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(opened->identity.inode, info.st_ino);
  EXPECT_EQ(opened->identity.type, std::uint32_t{S_IFREG});
  EXPECT_EQ(opened->identity.uid, info.st_uid);
  EXPECT_EQ(opened->identity.gid, info.st_gid);
  EXPECT_FALSE(opened->identity.is_directory());
  EXPECT_EQ(opened->resolved, file);
  EXPECT_TRUE(opened->links.empty());
  EXPECT_EQ(identify(opened->fd.get()), opened->identity);
}

TEST(HostPath, ADirectoryIsOne) {
  const TempDirectory directory;
  const auto opened = open_host_path(directory.path());
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->identity.is_directory());
}

TEST(HostPath, ADirectoryThatIsOpenedToBeListedIsTheSameOne) {
  const TempDirectory directory;
  directory.file("name", "text");
  const auto opened = open_to_list(directory.path());
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->identity, open_host_path(directory.path())->identity);
  EXPECT_EQ(opened->resolved, directory.path());
  alignas(dirent64) char names[1024];
  EXPECT_GT(::getdents64(opened->fd.get(), names, sizeof(names)), 0);
  EXPECT_EQ(::fcntl(opened->fd.get(), F_GETFD), FD_CLOEXEC);
}

// Neither is opened for reading: a pipe would wait for its writer, a device could do anything.
TEST(HostPath, WhatIsNoDirectoryIsNeverOpenedToBeListed) {
  const TempDirectory directory;
  const std::string pipe = directory.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {directory.file("file", "text"), pipe}) {
    const auto opened = open_to_list(path);
    ASSERT_TRUE(opened) << path;
    EXPECT_NE(::fcntl(opened->fd.get(), F_GETFL) & O_PATH, 0) << path;
  }
}

TEST(HostPath, ALinkIsNotFollowedToBeListed) {
  const TempDirectory directory;
  directory.file("real/name", "text");
  const std::string link = directory.path() + "/link";
  ASSERT_EQ(::symlink("real", link.c_str()), 0);
  belongs_to_a_user(link);
  EXPECT_FALSE(open_to_list(link));
  EXPECT_FALSE(open_to_list(link + "/name"));
  EXPECT_FALSE(open_to_list(directory.path() + "/none"));
}

TEST(HostPath, TheDescriptorHoldsTheFileWhenItsNameGoesToAnother) {
  const TempDirectory directory;
  const std::string file = directory.file("file", "text");
  const auto opened = open_host_path(file);
  ASSERT_TRUE(opened);
  ASSERT_EQ(::unlink(file.c_str()), 0);
  directory.file("file", "another");
  EXPECT_EQ(identify(opened->fd.get()), opened->identity);
  EXPECT_NE(identify(file), opened->identity);
}

TEST(HostPath, ALinkAtTheEndIsRefusedAndWhatItStandsForIsNamed) {
  const TempDirectory directory;
  const std::string file = directory.file("target", "text");
  const std::string link = directory.link("link", "target");
  const auto opened = open_host_path(link);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().exit_code, 125);
  EXPECT_NE(opened.error().message.find("symbolic link " + link), std::string::npos)
      << opened.error().message;
  EXPECT_NE(opened.error().help.find(file), std::string::npos) << opened.error().help;
}

TEST(HostPath, ALinkOfAUserInTheMiddleIsRefusedAndWhatItStandsForIsNamed) {
  const TempDirectory directory;
  const std::string file = directory.file("real/file", "text");
  const std::string link = directory.link("link", "real");
  belongs_to_a_user(link);
  const auto opened = open_host_path(link + "/file");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find(link), std::string::npos) << opened.error().message;
  EXPECT_NE(opened.error().help.find(file), std::string::npos) << opened.error().help;
}

TEST(HostPath, AUsersLinkBehindOneOfRootIsRefusedToo) {
  CAPGATE_REQUIRE(::geteuid() == 0, "needs root to make a link of root's");
  const TempDirectory directory;
  directory.file("real/file", "text");
  belongs_to_a_user(directory.link("users", "real"));
  directory.link("roots", "users");
  const auto opened = open_host_path(directory.path("roots/file"));
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find(directory.path("users")), std::string::npos);
}

TEST(HostPath, LinksOfRootAreFollowedAndRecorded) {
  CAPGATE_REQUIRE(::geteuid() == 0, "needs root to make a link of root's");
  const TempDirectory directory;
  const std::string file = directory.file("real/deep/file", "text");
  const std::string relative = directory.link("relative", "./real/../real");
  const std::string absolute = directory.link("absolute", relative);
  const auto opened = open_host_path(absolute + "/deep/file");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->resolved, file);
  EXPECT_EQ(opened->identity, identify(file));
  using Links = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(opened->links, (Links{{absolute, relative}, {relative, "./real/../real"}}));
}

TEST(HostPath, ALoopOfRootsLinksEnds) {
  const TempDirectory directory;
  directory.link("a", "b");
  directory.link("b", "a");
  EXPECT_FALSE(open_host_path(directory.path("a/file")));
}

TEST(HostPath, WhatIsMissingIsSaidWithARemedy) {
  const TempDirectory directory;
  const std::string path = directory.path("nowhere");
  const auto opened = open_host_path(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "cannot open " + path + ": No such file or directory");
  EXPECT_NE(opened.error().help.find("create it"), std::string::npos) << opened.error().help;
  EXPECT_EQ(opened.error().exit_code, 125);
}

TEST(HostPath, WhatIsMissingBehindALinkIsSaidToo) {
  CAPGATE_REQUIRE(::geteuid() == 0, "needs root to make a link of root's");
  const TempDirectory directory;
  directory.directory("real");
  directory.link("link", "real");
  const auto opened = open_host_path(directory.path("link/nowhere"));
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("No such file"), std::string::npos);
}

TEST(HostPath, AFileIsNoDirectory) {
  const TempDirectory directory;
  const std::string file = directory.file("file", "text");
  const auto opened = open_host_path(file + "/below");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("Not a directory"), std::string::npos);
}

TEST(HostPath, NamesAreShownWithoutControlCharacters) {
  const auto opened = open_host_path("/no\x1b[31mwhere");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message.find('\x1b'), std::string::npos);
}

TEST(Identify, DoesNotFollowALink) {
  const TempDirectory directory;
  directory.file("target", "text");
  const auto link = identify(directory.link("link", "target"));
  ASSERT_TRUE(link);
  EXPECT_EQ(link->type, std::uint32_t{S_IFLNK});
  const auto missing = identify(directory.path("nowhere"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error(), ENOENT);
}

TEST(Identify, NamesAreRelativeToADirectory) {
  const TempDirectory directory;
  const std::string file = directory.file("a/file", "text");
  const sys::Fd at(::open(directory.path("a").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(identify_at(at.get(), "file"), identify(file));
}

}  // namespace
}  // namespace capgate::sandbox
