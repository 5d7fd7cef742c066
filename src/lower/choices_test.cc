#include "lower/choices.h"

#include <gtest/gtest.h>

namespace capgate::lower {
namespace {

std::string mistake_of(std::string_view target, Options options) {
  const auto mistake = settle_options(*find_target(target), options, "--");
  return mistake ? mistake->message : "";
}

TEST(SettleOptions, AcceptsTheDefaultsAndWhatATargetNeeds) {
  EXPECT_EQ(mistake_of("bwrap", {}), "");
  EXPECT_EQ(mistake_of("compose", {.image = "ghcr.io/me/server:1"}), "");
  EXPECT_EQ(mistake_of("oci", {.command = {"/usr/bin/node", ""}}), "");
  EXPECT_EQ(mistake_of("egress", {.egress_target = "squid"}), "");
}

TEST(SettleOptions, BringsPathsIntoTheirForm) {
  Options options{.programs = {"/usr//bin/./node"}, .egress_dir = "/run/x/"};
  EXPECT_FALSE(settle_options(*find_target("bwrap"), options, "--"));
  EXPECT_EQ(options.programs.front(), "/usr/bin/node");
  EXPECT_EQ(options.egress_dir, "/run/x");
}

TEST(SettleOptions, RefusesWhatCannotBeMeant) {
  EXPECT_EQ(mistake_of("bwrap", {.programs = {"node"}}), "--program cannot be \"node\"");
  EXPECT_EQ(mistake_of("docker", {.user = "root"}), "--user cannot be \"root\"");
  EXPECT_EQ(mistake_of("docker", {.image = "--privileged"}), "--image cannot be \"--privileged\"");
  EXPECT_EQ(mistake_of("docker", {.egress_dir = "/"}), "--egress-dir cannot be \"/\"");
  EXPECT_EQ(mistake_of("egress", {.egress_target = "nginx"}),
            "--egress-target cannot be \"nginx\"");
  EXPECT_EQ(mistake_of("compose", {}), "target compose needs --image");
  EXPECT_EQ(mistake_of("oci", {}), "target oci needs the server's command");
  EXPECT_EQ(mistake_of("oci", {.command = {"", "x"}}), "the command's program has no name");
  EXPECT_EQ(mistake_of("oci", {.command = {"a\nb"}}),
            "a word of the command holds control characters");
  EXPECT_EQ(mistake_of("bwrap", {.command = {"node"}}),
            "target bwrap takes no command: \"node\" follows the manifest");
}

TEST(SettleOptions, RefusesWhatIsForAnotherTarget) {
  EXPECT_EQ(mistake_of("docker", {.script = true}), "--script means nothing to target docker");
  EXPECT_EQ(mistake_of("docker", {.rootful = true}), "--rootful means nothing to target docker");
  EXPECT_EQ(mistake_of("bwrap", {.egress_port = 1}), "--egress-port means nothing to target bwrap");
  EXPECT_EQ(mistake_of("podman", {.egress_target = "squid"}),
            "--egress-target means nothing to target podman");
}

}  // namespace
}  // namespace capgate::lower
