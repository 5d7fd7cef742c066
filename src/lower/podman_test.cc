#include "lower/podman.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

TEST(Podman, TheCallerBecomesTheServersUserUnlessItIsRoot) {
  EXPECT_TRUE(Lowered("podman", {}).has({"--userns", "keep-id:uid=1000,gid=1000"}));
  EXPECT_TRUE(Lowered("podman", {}, {.user = "7:8"}).has({"--userns", "keep-id:uid=7,gid=8"}));
  const Lowered root("podman", {}, {.rootful = true});
  EXPECT_FALSE(root.has({"--userns"}));
  EXPECT_TRUE(root.has({"--user", "1000:1000"}));
  EXPECT_TRUE(root.json().contains(R"("rootful":true)"));
}

TEST(Podman, AReadOnlyRootHasNoWritableCorners) {
  EXPECT_TRUE(Lowered("podman", {}).has({"--read-only-tmpfs=false"}));
  EXPECT_FALSE(Lowered("podman", {}, {.writable_root = true}).has({"--read-only-tmpfs=false"}));
}

TEST(Podman, NothingOfTheCallersEnvironmentArrives) {
  const Lowered podman("podman", {"env:inject:TOKEN"});
  EXPECT_TRUE(podman.has({"--env-host=false"}));
  EXPECT_TRUE(podman.has({"--http-proxy=false"}));
  EXPECT_TRUE(podman.has({"--env", "HOME=/tmp", "--env", "TOKEN"}));
}

TEST(Podman, APathCannotForgeFieldsOfAMount) {
  const Lowered podman("podman", {"fs:read:\"/a:/etc x=%y'\\\\é\""});
  EXPECT_TRUE(podman.has({"--mount",
                          "type=bind,source=/a:/etc x=%y'\\é,target=/a:/etc x=%y'\\é,readonly,"
                          "bind-nonrecursive=true"}));
  for (const std::string capability :
       {"fs:write:/a,readonly,b", "fs:write:\"/a\\\"b\"", "ipc:connect:\"unix:/a,b.sock\""}) {
    EXPECT_EQ(Lowered("podman", {capability}).verdict(), "ADAPTER_UNSUPPORTED") << capability;
  }
  const Lowered egress("podman", {"net:connect:h.example:443"}, {.egress_dir = "/a,b"});
  EXPECT_EQ(egress.verdict(), "ADAPTER_UNSUPPORTED");
}

TEST(Podman, DeclaredEgressIsMountedAndTheForwarderStartsTheCommand) {
  const Lowered podman("podman", {"net:connect:h.example:443"}, {.egress_dir = "/srv/egress"});
  EXPECT_TRUE(podman.has({"--network", "none"}));
  EXPECT_TRUE(podman.has({"--mount",
                          "type=bind,source=/srv/egress,target=/run/capgate,readonly,"
                          "bind-nonrecursive=true",
                          "--entrypoint", "/run/capgate/capgate-init"}));
  EXPECT_TRUE(podman.json().contains(R"("commandPrefix":["forward","--"],)"));
}

TEST(Podman, RefusesWhatItCannotKeep) {
  for (const std::string capability :
       {"exec:spawn:git", "limit:time:30s", "fs:create:/x", "fs:read:/x/*", "fs:read:/var/lib/**",
        "env:inject:A?to=h.example:443", "ipc:connect:dbus:session", "net:listen:8080"}) {
    EXPECT_EQ(Lowered("podman", {capability}).verdict(), "ADAPTER_UNSUPPORTED") << capability;
  }
}

}  // namespace
}  // namespace capgate::lower
