#include "sandbox/launch.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>

#include "support/temp_directory.h"

namespace capgate::sandbox {
namespace {

using test::TempDirectory;

// ---- the files of init --------------------------------------------------------------------------

TEST(SealedFile, CannotBeChangedByAnyone) {
  auto file = sealed_file("test", "contents", false);
  ASSERT_TRUE(file);
  EXPECT_EQ(::pwrite(file->get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::pwrite(file->get(), "x", 1, 8), -1) << "it cannot grow";
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(file->get(), 1), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::mmap(nullptr, 8, PROT_WRITE, MAP_SHARED, file->get(), 0), MAP_FAILED);
  EXPECT_EQ(::fcntl(file->get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1) << "no further seals";
  char text[9] = {};
  EXPECT_EQ(::pread(file->get(), text, 8, 0), 8);
  EXPECT_STREQ(text, "contents");
}

TEST(SealedFile, RunsOnlyWhereItIsAProgram) {
  const auto may_run = [](bool runs) {
    const auto file = sealed_file("test", "#!/bin/true\n", runs);
    return file && ::faccessat(file->get(), "", X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
  };
  EXPECT_TRUE(may_run(true));
  EXPECT_FALSE(may_run(false));
}

TEST(SealedFile, IsClosedOnExec) {
  const auto file = sealed_file("test", "", false);
  ASSERT_TRUE(file);
  EXPECT_EQ(::fcntl(file->get(), F_GETFD), FD_CLOEXEC);
}

// ---- users --------------------------------------------------------------------------------------

// Whoever owns a namespace has every right over it: the broker must be somebody else.
TEST(HostUser, SandboxAndBrokerOfRootAreTwoUsersThatNobodyIs) {
  const HostUser sandbox = choose_host_user();
  const HostUser broker = choose_broker_user();
  EXPECT_EQ(sandbox.leaves_root, ::getuid() == 0);
  EXPECT_EQ(sandbox.uid != broker.uid, ::getuid() == 0);
  EXPECT_EQ(sandbox.gid != broker.gid, ::getuid() == 0);
  EXPECT_EQ(sandbox.uid >= 1'879'048'192, ::getuid() == 0);
}

TEST(HostUser, LeavingRootForGoodLeavesNothingOfIt) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const gid_t groups[] = {7777};
    const bool is_root = ::setgroups(1, groups) == 0;
    const bool left = leave_root_for_good({.uid = 12345, .gid = 12346});
    if (left != is_root) ::_exit(1);
    if (!is_root) ::_exit(0);  // only root can leave it
    if (::getgroups(0, nullptr) != 0) ::_exit(2);
    uid_t uids[3];
    gid_t gids[3];
    ::getresuid(&uids[0], &uids[1], &uids[2]);
    ::getresgid(&gids[0], &gids[1], &gids[2]);
    for (const uid_t uid : uids) {
      if (uid != 12345) ::_exit(3);
    }
    for (const gid_t gid : gids) {
      if (gid != 12346) ::_exit(4);
    }
    ::_exit(::setresuid(0, 0, 0) == 0 ? 5 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// ---- granted paths of others, mounted by root
// ----------------------------------------------------

TEST(MakeTrees, RefusesWhatChangedSinceItWasLookedAt) {
  const TempDirectory place;
  const std::string granted = place.directory("granted");
  Bound bound;
  bound.mounts = {{.kind = orders::MountKind::bind,
                   .target = "/data",
                   .source = granted,
                   .identity = *identify(granted),
                   .rights = "read",
                   .owned = true}};
  const HostUser user{.uid = 12345, .gid = 12345, .leaves_root = true};
  const auto refused = [&] {
    const auto trees = make_trees(bound, user);
    return !trees && trees.error().message.find("changed while") != std::string::npos;
  };
  EXPECT_FALSE(refused()) << "the control";
  std::filesystem::rename(granted, place.path("old"));
  std::filesystem::create_directory_symlink(place.path("old"), granted);
  EXPECT_TRUE(refused()) << "a link to the same directory";
  std::filesystem::remove(granted);
  EXPECT_TRUE(refused()) << "gone";
  place.directory("granted");
  EXPECT_TRUE(refused()) << "another directory";
}

}  // namespace
}  // namespace capgate::sandbox
