#include "lower/landlock.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

TEST(Landlock, IsClosedWithoutAnyCapability) {
  const Lowered landlock("landlock", {});
  EXPECT_EQ(landlock.argv(),
            (Strings{"--rox", "/usr", "--rw", "/dev/full", "--rw", "/dev/null", "--rw", "/dev/zero",
                     "--ro", "/dev/random", "--ro", "/dev/urandom", "--env",
                     "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--env",
                     "LANG=C.UTF-8", "--"}));
}

TEST(Landlock, GrantsAreRulesByPath) {
  const Lowered landlock("landlock", {"fs:read:/a b/**", "fs:write:\"/a b/c\""});
  EXPECT_TRUE(landlock.has({"--ro", "/a b"}));
  EXPECT_TRUE(landlock.has({"--rw", "/a b/c"}));
}

TEST(Landlock, APathThatLandrunWouldCutIsRefused) {
  for (const std::string path : {"/a,/etc", "/home/u/b,c"}) {
    EXPECT_EQ(Lowered("landlock", {"fs:read:\"" + path + "\""}).verdict(), "ADAPTER_UNSUPPORTED")
        << path;
  }
  for (const std::string path : {"/a:b", "/a'b", "/a b\\\\c\\\"d", "/größe%s", "/--rw"}) {
    EXPECT_EQ(Lowered("landlock", {"fs:read:\"" + path + "\""}).verdict(), "ok") << path;
  }
}

TEST(Landlock, PortsAreOpenedOnceAndHostsAreSaidToBeOpen) {
  const Lowered landlock(
      "landlock", {"net:connect:a.example:443", "net:connect:b.example:443", "net:listen:8080"});
  EXPECT_EQ(std::ranges::count(landlock.argv(), "--connect-tcp"), 1);
  EXPECT_TRUE(landlock.has({"--connect-tcp", "443"}));
  EXPECT_TRUE(landlock.has({"--bind-tcp", "8080"}));
  EXPECT_EQ(landlock.artifact().not_covered,
            (Strings{"net:connect:a.example:443", "net:connect:b.example:443", "net:listen:8080"}));
  EXPECT_EQ(Lowered("landlock", {"net:connect:*"}).verdict(), "ADAPTER_UNSUPPORTED");
}

TEST(Landlock, WithTheServersProgramOthersCannotBeStarted) {
  const Lowered landlock("landlock", {"exec:spawn:git", "exec:spawn:ping"},
                         {.programs = {"/usr/bin/node", "/opt/bin/ping"}});
  EXPECT_TRUE(landlock.has({"--ro", "/usr"}));
  EXPECT_TRUE(landlock.has({"--rox", "/lib64/ld-linux-x86-64.so.2"}));
  EXPECT_TRUE(landlock.has({"--rox", "/usr/bin/node"}));
  EXPECT_TRUE(landlock.has({"--rox", "/usr/bin/git"}));
  EXPECT_TRUE(landlock.has({"--rox", "/opt/bin/ping"}));
  EXPECT_FALSE(landlock.has({"--rox", "/usr/bin/ping"}));
  EXPECT_FALSE(landlock.has({"--rox", "/usr"}));
  EXPECT_EQ(landlock.artifact().not_covered, (Strings{"exec:spawn:git", "exec:spawn:ping"}));
}

TEST(Landlock, ASealedVariableIsNotPassedOn) {
  const Lowered landlock(
      "landlock", {"net:connect:h.example:443", "env:inject:A?to=h.example:443", "env:inject:B"});
  EXPECT_TRUE(landlock.has({"--env", "B"}));
  EXPECT_FALSE(landlock.has({"--env", "A"}));
}

TEST(Landlock, RefusesWhatItCannotKeep) {
  for (const std::string capability :
       {"fs:create:/x", "fs:read:/x/*", "fs:read:/var/lib/**", "net:connect:a.example"}) {
    EXPECT_EQ(Lowered("landlock", {capability}).verdict(), "ADAPTER_UNSUPPORTED") << capability;
  }
  const Lowered tmp("landlock", {"fs:write:/tmp/**"});
  EXPECT_EQ(tmp.artifact().not_covered, Strings{"fs:write:/tmp/**"});
  EXPECT_FALSE(tmp.has({"--rw", "/tmp"}));
}

}  // namespace
}  // namespace capgate::lower
