#include "sandbox/view.h"

#include <gtest/gtest.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include "sandbox/tree.h"

namespace capgate::sandbox {
namespace {

using orders::MountKind;

constexpr Identity a_directory{.device = 1, .inode = 2, .type = S_IFDIR};

// /usr of this host, /bin as a link to it, a private /tmp with a cover in the host's part.
Bound sample() {
  Tree tree;
  tree.bind("/usr", "/usr", a_directory, MOUNT_ATTR_RDONLY);
  tree.tmpfs("/usr/bin", 4096, 0755, 0);
  tree.read_only_at_the_end("/usr/bin");
  tree.symlink("/bin", "usr/bin");
  tree.symlink("/a", "/b");
  tree.symlink("/b", "/a");
  tree.tmpfs("/tmp", 1, 01777, 0);
  tree.cover("/usr/share", a_directory);
  tree.bind("/srv/data", "/usr/lib", a_directory, 0, "write");
  tree.pin("/srv/data/os-release", a_directory, MOUNT_ATTR_RDONLY);
  Bound bound;
  bound.mounts = std::move(tree).take();
  bound.landlock = {{.path = "/", .access = 1}, {.path = "/srv/data", .access = 6}};
  return bound;
}

TEST(View, TheLastMountAtOrAboveAPathDecides) {
  const Bound bound = sample();
  const View view(bound);
  EXPECT_EQ(view.look("/usr/share/doc").mount->kind, MountKind::cover);
  EXPECT_EQ(view.look("/usr/bin/sh").mount->kind, MountKind::tmpfs);
  EXPECT_FALSE(view.look("/usr/bin/sh").exists);
  EXPECT_TRUE(view.look("/usr/bin/sh").is_read_only) << "added when its contents are in place";
  EXPECT_EQ(view.look("/usr/lib").host, "/usr/lib");
  EXPECT_TRUE(view.look("/usr/lib").is_directory);
  EXPECT_EQ(view.look("/srv/data/x").host, "/usr/lib/x");
  EXPECT_FALSE(view.look("/srv/data/x").is_read_only);
  EXPECT_EQ(view.look("/srvx").mount, nullptr);
}

TEST(View, APinIsWhatItIsMountedOn) {
  const Bound bound = sample();
  const Seen seen = View(bound).look("/srv/data/os-release");
  EXPECT_EQ(seen.host, "/usr/lib/os-release");
  EXPECT_TRUE(seen.is_read_only);
}

TEST(View, LinksAreFollowedAsTheyStandInside) {
  const Bound bound = sample();
  const View view(bound);
  EXPECT_EQ(view.look("/bin/sh").path, "/usr/bin/sh");
  EXPECT_EQ(view.look("/usr/lib/../../tmp//x/.").path, "/tmp/x");
  EXPECT_EQ(view.look("/../../tmp").path, "/tmp");
  EXPECT_TRUE(view.look("/a/x").loops);
}

TEST(View, DirectoriesOnTheWayAreThere) {
  const Bound bound = sample();
  const View view(bound);
  EXPECT_TRUE(view.look("/").is_directory);
  EXPECT_TRUE(view.look("/srv").is_directory);
  EXPECT_FALSE(view.look("/opt").exists);
}

TEST(View, RightsAddUp) {
  const Bound bound = sample();
  const View view(bound);
  EXPECT_EQ(view.access("/srv/data/x"), 7U);
  EXPECT_EQ(view.access("/srv"), 1U);
}

}  // namespace
}  // namespace capgate::sandbox
