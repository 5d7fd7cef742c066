#include "lower/kubernetes.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

Options options(Strings command = {}) {
  return {.image = "example/server:1",
          .broker_image = "example/capgate:1",
          .command = std::move(command)};
}

std::string yaml(const Strings& capabilities, Options with = options()) {
  const Lowered lowered("kubernetes", capabilities, std::move(with));
  EXPECT_EQ(lowered.verdict(), "ok");
  return lowered.ok() ? lowered.artifact().files.front().contents : "";
}
std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Kubernetes, WithoutNetworkThereIsNoBrokerAndEverythingIsDenied) {
  const std::string objects = yaml({});
  EXPECT_TRUE(objects.contains("  ingress: []\n  egress: []\n"));
  EXPECT_FALSE(objects.contains("kind: Service\n"));
  EXPECT_TRUE(objects.contains("enableServiceLinks: false"));
}

TEST(Kubernetes, TheServerReachesTheBrokerOnly) {
  const std::string objects = yaml({"net:connect:a.example:443"});
  EXPECT_EQ(count(objects, "kind: NetworkPolicy"), 2U);
  EXPECT_EQ(count(objects, "kind: Deployment"), 2U);  // not a side container
  EXPECT_EQ(count(objects, "initContainers"), 0U);
  EXPECT_TRUE(objects.contains("    - connect: \"a.example:443\""));
}

TEST(Kubernetes, CiliumHoldsTheBrokerToNames) {
  Options with = options();
  with.cilium = true;
  const std::string objects =
      yaml({"net:connect:a.example:443", "net:connect:*.b.example:8443"}, with);
  EXPECT_EQ(count(objects, "kind: CiliumNetworkPolicy"), 2U);
  EXPECT_EQ(count(objects, "kind: NetworkPolicy"), 0U);
  EXPECT_EQ(count(objects, "matchName: a.example"), 2U);  // asked for, and connected to
  EXPECT_EQ(count(objects, "matchPattern: \"*.b.example\""), 2U);
  EXPECT_TRUE(objects.contains("egressDeny:"));
  EXPECT_FALSE(yaml({"net:connect:10.0.0.5:5432"}, with).contains("egressDeny:"));
  EXPECT_TRUE(yaml({"net:connect:10.0.0.5:5432"}, with).contains("- \"10.0.0.5/32\""));
}

// A server that is called like another one's broker must not get the broker's policies.
TEST(Kubernetes, NoServerCanHaveTheNameOfABroker) {
  const Lowered lowered("kubernetes", {"net:connect:a.example:443"}, options());
  const std::string& objects = lowered.artifact().files.front().contents;
  EXPECT_TRUE(objects.contains("name: egress-"));
  EXPECT_EQ(count(objects, "name: mcp-egress-"), 0U);
}

TEST(Kubernetes, NothingInACommandOrAPathIsSyntax) {
  const std::string objects = yaml({"fs:read:\"/a: b (c) #d 'e' \\\"f\\\" $(HOME)\""},
                                   options({"/bin/x", "$(TOKEN)", "$$", "- a: b", "%\"\\", "yes"}));
  EXPECT_TRUE(objects.contains(R"~(            - "$$(TOKEN)"
            - "$$$$"
            - "- a: b"
            - "%\"\\"
            - "yes")~"));
  EXPECT_TRUE(objects.contains(R"~(mountPath: "/a: b (c) #d 'e' \"f\" $(HOME)")~"));
}

TEST(Kubernetes, AGrantInsideAnotherIsAPlaceInItsClaim) {
  const std::string objects = yaml({"fs:read:/srv/tree/**", "fs:write:/srv/tree/out/**"});
  EXPECT_TRUE(
      objects.contains("mountPath: /srv/tree/out\n              subPath: out\n"
                       "              readOnly: false"));
  EXPECT_EQ(count(objects, "claimName"), 1U);
  const std::string apart = yaml({"fs:read:/srv/a/b", "fs:read:/srv/a-b"});
  EXPECT_EQ(count(apart, "claimName: srv-a-b-"), 2U);
}

TEST(Kubernetes, ValuesComeByReference) {
  const std::string objects = yaml({"env:inject:KEY", "env:read:LANGUAGE"});
  EXPECT_TRUE(
      objects.contains("- name: KEY\n              valueFrom:\n                secretKeyRef:"));
  EXPECT_TRUE(
      objects.contains("- name: LANGUAGE\n              valueFrom:\n"
                       "                configMapKeyRef:"));
}

TEST(Kubernetes, LimitsComeFromThePolicy) {
  const std::string objects = yaml({"limit:memory:512M", "limit:cpu:150%", "limit:disk:1M"});
  EXPECT_TRUE(
      objects.contains("memory: \"536870912\"\n              cpu: \"1500m\"\n"
                       "              ephemeral-storage: \"1048576\""));
  EXPECT_TRUE(objects.contains("sizeLimit: \"1048576\""));
}

TEST(Kubernetes, WithoutAnExecCapabilityNoProcessCanBeMade) {
  const Lowered lowered("kubernetes", {}, options());
  const std::string& profile = lowered.artifact().files.back().contents;
  const std::size_t action = profile.find("\"action\"", profile.find("\"vfork\""));
  EXPECT_TRUE(profile.substr(action).starts_with("\"action\":\"SCMP_ACT_ERRNO\""));
}

TEST(Kubernetes, RefusesWhatItCannotKeep) {
  for (const std::string capability :
       {"net:listen:8080", "fs:create:/x", "fs:read:/x/*", "env:inject:A?to=h.example:443",
        "net:connect:h.example:443?methods=GET", "net:connect:localhost:5432",
        "net:connect:127.0.0.1:5432", "ipc:connect:x11", "ipc:connect:\"unix:/run/x.sock\"",
        "limit:pids:3", "limit:time:3s", "limit:files:3", "exec:spawn:git",
        "fs:read:/var/lib/**"}) {
    EXPECT_EQ(Lowered("kubernetes", {capability}, options()).verdict(), "ADAPTER_UNSUPPORTED")
        << capability;
  }
  Options root = options();
  root.user = "0:0";
  EXPECT_EQ(Lowered("kubernetes", {}, root).verdict(), "ADAPTER_UNSUPPORTED");
  Options alone = options();
  alone.broker_image.clear();
  EXPECT_EQ(Lowered("kubernetes", {}, alone).verdict(), "ok");
  EXPECT_EQ(Lowered("kubernetes", {"net:connect:h.example:443"}, alone).verdict(),
            "ADAPTER_UNSUPPORTED");
}

}  // namespace
}  // namespace capgate::lower
