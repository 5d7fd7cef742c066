#include "sandbox/tree.h"

#include <gtest/gtest.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

namespace capgate::sandbox {
namespace {

using orders::MountKind;

constexpr Identity a_directory{.device = 1, .inode = 2, .type = S_IFDIR, .uid = 3, .gid = 4};
constexpr Identity a_file{.device = 1, .inode = 5, .type = S_IFREG, .uid = 3, .gid = 4};
constexpr Identity a_device{.device = 1, .inode = 6, .type = S_IFCHR, .uid = 0, .gid = 0};

std::string kind_name(MountKind kind) {
  using enum MountKind;
  switch (kind) {
    case directory: return "directory";
    case file: return "file";
    case symlink: return "symlink";
    case tmpfs: return "tmpfs";
    case proc: return "proc";
    case bind: return "bind";
    case tree: return "tree";
    case pin: return "pin";
    case cover: return "cover";
    case attributes: return "attributes";
  }
  return "";
}

// "directory /srv", one for each mount in its order.
std::vector<std::string> steps(Tree tree) {
  std::vector<std::string> out;
  for (const BoundMount& mount : std::move(tree).take()) {
    out.push_back(kind_name(mount.kind) + " " + mount.target);
  }
  return out;
}

using Steps = std::vector<std::string>;

TEST(Tree, ParentsAreMadeBeforeAMountAndOnlyOnce) {
  Tree tree;
  tree.bind("/srv/a/data", "/srv/a/data", a_directory, 0);
  tree.bind("/srv/a/other", "/srv/a/other", a_directory, 0);
  EXPECT_EQ(steps(std::move(tree)),
            (Steps{"directory /srv", "directory /srv/a", "directory /srv/a/data",
                   "bind /srv/a/data", "directory /srv/a/other", "bind /srv/a/other"}));
}

TEST(Tree, NothingIsMadeTwice) {
  Tree tree;
  tree.directory("/a");
  tree.directory("/a", 0700);
  tree.file("/b", "first", 0444);
  tree.file("/b", "second", 0444);
  tree.symlink("/c", "a");
  tree.symlink("/c", "b");
  const std::vector<BoundMount> mounts = std::move(tree).take();
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[0].mode, 0755U);
  EXPECT_EQ(mounts[1].source, "first");
  EXPECT_EQ(mounts[2].source, "a");
}

TEST(Tree, AFileIsMountedOnAFile) {
  Tree tree;
  tree.bind("/srv/note", "/srv/note", a_file, MOUNT_ATTR_RDONLY);
  EXPECT_EQ(steps(std::move(tree)), (Steps{"directory /srv", "file /srv/note", "bind /srv/note"}));
}

TEST(Tree, NothingIsMadeInsideAMountOfTheHost) {
  Tree tree;
  tree.bind("/srv", "/srv", a_directory, 0);
  tree.directory("/srv/made");
  tree.file("/srv/deep/made", "text", 0444);
  tree.symlink("/srv/link", "made");
  EXPECT_EQ(steps(std::move(tree)), (Steps{"directory /srv", "bind /srv"}));
}

TEST(Tree, AMountInsideAMountOfTheHostUsesTheHostsMountPoint) {
  Tree tree;
  tree.bind("/srv", "/srv", a_directory, MOUNT_ATTR_RDONLY);
  tree.bind("/srv/deep/data", "/srv/deep/data", a_directory, 0);
  tree.bind("/srv/deep/note", "/srv/deep/note", a_file, 0);
  EXPECT_EQ(steps(std::move(tree)),
            (Steps{"directory /srv", "bind /srv", "bind /srv/deep/data", "bind /srv/deep/note"}));
}

TEST(Tree, PinsAndCoversBelongToTheHost) {
  Tree tree;
  tree.bind("/srv", "/srv", a_directory, 0);
  tree.pin("/srv/.git", a_directory, 0);
  tree.cover("/srv/.ssh", a_directory);
  EXPECT_TRUE(tree.is_host("/srv/.git/hooks"));
  EXPECT_TRUE(tree.is_host("/srv/.ssh/id"));
  EXPECT_TRUE(tree.has("/srv/.git"));
  EXPECT_TRUE(tree.has("/srv/.ssh"));
  tree.file("/srv/.ssh/id", "text", 0444);
  EXPECT_EQ(steps(std::move(tree)),
            (Steps{"directory /srv", "bind /srv", "pin /srv/.git", "cover /srv/.ssh"}));
}

TEST(Tree, APrivateMountOnTopOfTheHostsIsPrivate) {
  Tree tree;
  tree.bind("/usr", "/usr", a_directory, MOUNT_ATTR_RDONLY);
  tree.tmpfs("/usr/bin", 4096, 0755, 0);
  EXPECT_TRUE(tree.is_host("/usr/lib/x"));
  EXPECT_FALSE(tree.is_host("/usr/bin"));
  EXPECT_FALSE(tree.is_host("/usr/bin/tool"));
  tree.symlink("/usr/bin/tool", "other");
  tree.bind("/usr/bin/other", "/usr/bin/other", a_file, MOUNT_ATTR_RDONLY);
  EXPECT_EQ(steps(std::move(tree)),
            (Steps{"directory /usr", "bind /usr", "tmpfs /usr/bin", "symlink /usr/bin/tool",
                   "file /usr/bin/other", "bind /usr/bin/other"}));
}

TEST(Tree, WhatWasMountedLastIsWhatIsThere) {
  Tree tree;
  tree.tmpfs("/srv", 4096, 0755, 0);
  tree.bind("/srv", "/srv", a_directory, MOUNT_ATTR_RDONLY);
  EXPECT_TRUE(tree.is_host("/srv/x"));
  EXPECT_FALSE(tree.is_private("/srv/x"));
  tree.tmpfs("/srv", 4096, 0755, 0);
  EXPECT_FALSE(tree.is_host("/srv/x"));
  EXPECT_TRUE(tree.is_private("/srv/x"));
}

TEST(Tree, RoomForMountsChangesNothing) {
  Tree tree;
  tree.reserve(1000);
  EXPECT_FALSE(tree.has("/srv"));
  tree.directory("/srv");
  tree.reserve(1);
  EXPECT_EQ(steps(std::move(tree)), (Steps{"directory /srv"}));
}

TEST(Tree, WholeComponentsDecideWhatBelongsToTheHost) {
  Tree tree;
  tree.bind("/srv/data", "/srv/data", a_directory, 0);
  EXPECT_TRUE(tree.is_host("/srv/data"));
  EXPECT_FALSE(tree.is_host("/srv/database"));
  EXPECT_FALSE(tree.is_host("/srv"));
  EXPECT_FALSE(tree.is_host("/"));
}

TEST(Tree, ProcIsOurOwn) {
  Tree tree;
  tree.proc("/proc", MOUNT_ATTR_NOEXEC);
  EXPECT_FALSE(tree.is_host("/proc/self"));
  const std::vector<BoundMount> mounts = std::move(tree).take();
  EXPECT_EQ(mounts.back().attributes,
            std::uint64_t{MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC});
}

TEST(Tree, EveryMountIsNosuidAndAllButDevicesNodev) {
  Tree tree;
  tree.tmpfs("/tmp", 1, 01777, 0);
  tree.proc("/proc", 0);
  tree.bind("/srv", "/srv", a_directory, 0);
  tree.bind("/dev/null", "/dev/null", a_device, MOUNT_ATTR_NOEXEC);
  tree.pin("/srv/.git", a_directory, 0);
  tree.cover("/srv/.ssh", a_directory);
  for (const BoundMount& mount : std::move(tree).take()) {
    if (mount.kind == MountKind::directory || mount.kind == MountKind::file) continue;
    EXPECT_NE(mount.attributes & MOUNT_ATTR_NOSUID, 0U) << mount.target;
    EXPECT_EQ((mount.attributes & MOUNT_ATTR_NODEV) != 0, mount.target != "/dev/null")
        << mount.target;
  }
}

TEST(Tree, ACoverCanNeitherBeWrittenNorRun) {
  Tree tree;
  tree.cover("/srv/.ssh", a_directory);
  const BoundMount cover = std::move(tree).take().front();
  EXPECT_NE(cover.attributes & MOUNT_ATTR_RDONLY, 0U);
  EXPECT_NE(cover.attributes & MOUNT_ATTR_NOEXEC, 0U);
}

// A secret that is moved away while the sandbox is made would come back without its cover.
TEST(Tree, ACoverMustBeMade) {
  Tree tree;
  tree.cover("/srv/.ssh", a_directory);
  EXPECT_FALSE(std::move(tree).take().front().optional);
}

TEST(Tree, IdentityAndOwnershipAreKept) {
  Tree tree;
  tree.bind("/inside", "/outside", a_directory, MOUNT_ATTR_RDONLY, "read");
  const BoundMount mount = std::move(tree).take().back();
  EXPECT_EQ(mount.source, "/outside");
  EXPECT_EQ(mount.identity, a_directory);
  EXPECT_TRUE(mount.owned);
  EXPECT_NE(mount.attributes & MOUNT_ATTR_RDONLY, 0U);
}

TEST(Tree, WhatBecomesReadOnlyBecomesSoAtTheEnd) {
  Tree tree;
  tree.tmpfs("/usr/bin", 4096, 0755, 0);
  tree.read_only_at_the_end("/usr/bin");
  tree.bind("/usr/bin/tool", "/usr/bin/tool", a_file, MOUNT_ATTR_RDONLY);
  const std::vector<BoundMount> mounts = std::move(tree).take();
  EXPECT_EQ(mounts.back().kind, MountKind::attributes);
  EXPECT_EQ(mounts.back().target, "/usr/bin");
  EXPECT_EQ(mounts.back().attributes, std::uint64_t{MOUNT_ATTR_RDONLY});
  EXPECT_EQ(std::ranges::count(mounts, MountKind::attributes, &BoundMount::kind), 1);
}

}  // namespace
}  // namespace capgate::sandbox
