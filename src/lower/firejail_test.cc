#include "lower/firejail.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

std::string profile(const Strings& capabilities, Options options = {}) {
  const Lowered firejail("firejail", capabilities, std::move(options));
  EXPECT_EQ(firejail.verdict(), "ok");
  return "\n" + firejail.artifact().files.front().contents;
}

bool has(const std::string& profile, std::string_view line) {
  return profile.find(format("\n{}\n", line)) != std::string::npos;
}

TEST(Firejail, IsClosedWithoutAnyCapability) {
  const std::string text = profile({});
  for (const std::string_view line :
       {"caps.drop all", "nonewprivs", "noroot", "net none", "blacklist /*", "blacklist /run/*",
        "x11 none", "protocol inet,inet6", "seccomp.block-secondary", "rlimit-nofile 1024"}) {
    EXPECT_TRUE(has(text, line)) << line;
  }
  EXPECT_EQ(text.find("\nwhitelist"), std::string::npos);
  EXPECT_EQ(text.find("noblacklist /srv"), std::string::npos);
}

TEST(Firejail, GrantsAreWhitelisted) {
  const std::string text = profile({"fs:read:/srv/a b/**", "fs:write:/data/w"});
  EXPECT_TRUE(has(text, "whitelist /srv/a b"));
  EXPECT_TRUE(has(text, "read-only /srv/a b"));
  EXPECT_TRUE(has(text, "read-write /data/w"));
  EXPECT_TRUE(has(text, "noexec /data/w"));
  EXPECT_TRUE(has(text, "read-only /data/w/.git/hooks"));
  EXPECT_TRUE(has(text, "noblacklist /srv"));
  EXPECT_TRUE(has(text, "noblacklist /data"));
  const std::string top = profile({"fs:read:/workspace/**"});
  EXPECT_TRUE(has(top, "read-only /workspace"));
  EXPECT_FALSE(has(top, "whitelist /workspace"));
}

TEST(Firejail, APathThatALineCannotHoldIsRefused) {
  for (const std::string path : {"/a,b", "/a'b", "/a#b", "/a  b", "/a(b)", "/a%b", "/a;b", "/a&b",
                                 "/a!b", "/a~b", "/a\\\\b", "/a\\\"b"}) {
    EXPECT_EQ(Lowered("firejail", {"fs:read:\"" + path + "\""}).verdict(), "ADAPTER_UNSUPPORTED")
        << path;
  }
  EXPECT_EQ(Lowered("firejail", {"fs:read:\"/größe a:b=c+d@e\""}).verdict(), "ok");
}

TEST(Firejail, DirectoriesThatItMakesAnewCannotHoldAGrant) {
  for (const std::string path : {"/etc/ssl", "/run/x", "/var/tmp/x"}) {
    EXPECT_EQ(Lowered("firejail", {"fs:read:" + path}).verdict(), "ADAPTER_UNSUPPORTED") << path;
  }
  EXPECT_EQ(profile({"fs:read:/usr/share/zoneinfo/**"}).find("whitelist"), std::string::npos);
}

TEST(Firejail, CredentialsAreHidden) {
  EXPECT_TRUE(has(profile({"fs:read:/home/u/.local/share/**"}, {.home = "/home/u"}),
                  "blacklist /home/u/.local/share/keyrings"));
}

TEST(Firejail, ProgramsAreNames) {
  const Lowered firejail("firejail", {"exec:spawn:git"}, {.programs = {"/usr/bin/node"}});
  EXPECT_NE(firejail.artifact().files.front().contents.find("\nprivate-bin git,node\n"),
            std::string::npos);
  EXPECT_EQ(firejail.artifact().not_covered, Strings{"exec:spawn:git"});
}

TEST(Firejail, SocketsAndLimits) {
  const Lowered firejail(
      "firejail", {"ipc:connect:self", "ipc:connect:unix:/a.sock", "ipc:connect:netlink-route",
                   "limit:time:3725s", "limit:files:64", "limit:pids:9"});
  const std::string& text = firejail.artifact().files.front().contents;
  EXPECT_TRUE(has(text, "protocol unix,inet,inet6,netlink"));
  EXPECT_TRUE(has(text, "timeout 01:02:05"));
  EXPECT_TRUE(has(text, "rlimit-nofile 64"));
  EXPECT_EQ(firejail.artifact().not_covered,
            (Strings{"ipc:connect:\"unix:/a.sock\"", "limit:pids:9"}));
}

TEST(Firejail, RefusesWhatItCannotKeep) {
  for (const std::string capability : {"fs:create:/x", "fs:read:/x/*"}) {
    EXPECT_EQ(Lowered("firejail", {capability}).verdict(), "ADAPTER_UNSUPPORTED") << capability;
  }
}

}  // namespace
}  // namespace capgate::lower
