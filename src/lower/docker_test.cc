#include "lower/docker.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

TEST(Docker, D8APathCannotForgeFieldsOfAMount) {
  const Lowered colon("docker", {"fs:read:\"/a:/etc:rw\""});
  EXPECT_TRUE(colon.has({"--mount",
                         "type=bind,source=/a:/etc:rw,target=/a:/etc:rw,readonly,"
                         "bind-nonrecursive=true"}));
  const Lowered comma("docker", {"fs:write:/a,readonly,b"});
  EXPECT_TRUE(
      comma.has({"--mount", "type=bind,\"source=/a,readonly,b\",\"target=/a,readonly,b\""}));
  const Lowered quote("docker", {"fs:write:\"/a\\\"b\""});
  EXPECT_TRUE(quote.has({"--mount", "type=bind,\"source=/a\"\"b\",\"target=/a\"\"b\""}));
}

TEST(Docker, D17DeclaredNetworkStaysClosed) {
  for (const Strings& capabilities : {Strings{}, Strings{"net:connect:*"}}) {
    const Lowered docker("docker", capabilities);
    EXPECT_TRUE(docker.has({"--network", "none"}));
    EXPECT_TRUE(docker.has({"--pids-limit", "256"}));
    EXPECT_TRUE(docker.has({"--memory", "2147483648"}));
    EXPECT_TRUE(docker.has({"--user", "1000:1000"}));
    EXPECT_TRUE(docker.has({"--init", "-i"}));
  }
}

TEST(Docker, D18TmpIsAlwaysPrivateWithGrantsOnTop) {
  const Lowered docker("docker", {"fs:read:/tmp/file.txt", "fs:write:/tmp/**"});
  EXPECT_TRUE(docker.has({"--tmpfs", "/tmp:rw,noexec,nosuid,nodev,size=268435456"}));
  EXPECT_EQ(std::ranges::count(docker.argv(), "--mount"), 1);
}

TEST(Docker, OnePlaceHasOneMount) {
  const Lowered docker("docker", {"fs:read:/usr/share/zoneinfo/**", "clock:tzdata"});
  EXPECT_EQ(std::ranges::count(docker.argv(), "--mount"), 2);
}

TEST(Docker, LimitsComeFromThePolicy) {
  const Lowered docker("docker", {"limit:memory:512M", "limit:pids:32", "limit:files:64",
                                  "limit:cpu:150%", "limit:disk:1M"});
  EXPECT_TRUE(docker.has({"--memory", "536870912", "--memory-swap", "536870912"}));
  EXPECT_TRUE(docker.has({"--pids-limit", "32"}));
  EXPECT_TRUE(docker.has({"--ulimit", "nofile=64"}));
  EXPECT_TRUE(docker.has({"--cpus", "1.50"}));
}

TEST(Docker, OptionsChooseTheUserAndTheRoot) {
  const Lowered docker("docker", {}, {.user = "7:8", .writable_root = true});
  EXPECT_TRUE(docker.has({"--user", "7:8"}));
  EXPECT_FALSE(docker.has({"--read-only"}));
}

TEST(Docker, RefusesWhatItCannotKeep) {
  for (const std::string capability :
       {"exec:spawn:git", "limit:time:30s", "fs:create:/x", "fs:read:/x/*", "fs:read:/var/lib/**",
        "env:inject:A?to=h.example:443", "ipc:connect:dbus:session", "net:listen:8080",
        "net:connect:h.example:443?paths=/v1/**"}) {
    EXPECT_EQ(Lowered("docker", {capability}).verdict(), "ADAPTER_UNSUPPORTED") << capability;
  }
}

TEST(Docker, DeclaredEgressIsMountedAndTheForwarderStartsTheCommand) {
  const Lowered docker("docker", {"net:connect:h.example:443"}, {.egress_dir = "/srv/a,b"});
  EXPECT_TRUE(docker.has({"--mount",
                          "type=bind,\"source=/srv/a,b\",target=/run/capgate,readonly,"
                          "bind-nonrecursive=true",
                          "--entrypoint", "/run/capgate/capgate-init"}));
  EXPECT_TRUE(docker.json().contains(R"("commandPrefix":["forward","--"],)"));
  const Lowered sockets("docker", {"net:connect:h.example:443", "ipc:connect:self"});
  EXPECT_TRUE(sockets.json().contains(R"("commandPrefix":["forward","--unix-sockets","--"],)"));
}

TEST(Docker, WithoutDeclaredEgressThereIsNoForwarder) {
  const Lowered docker("docker", {"fs:read:/srv/x"});
  EXPECT_FALSE(docker.has({"--entrypoint"}));
  EXPECT_FALSE(docker.json().contains("commandPrefix"));
}

TEST(Docker, D24AssertionsAndUnenforcedGrantsStandInTheArtifact) {
  const Lowered docker("docker", {"assert:a:\"b\"", "exec:spawn:git"},
                       {.accepted = {"exec:spawn:git"}});
  EXPECT_NE(docker.json().find(R"("assertions":[{"id":"a","description":"b"}])"),
            std::string::npos);
  EXPECT_NE(docker.json().find(R"("unenforced":["exec:spawn:git"])"), std::string::npos);
}

}  // namespace
}  // namespace capgate::lower
