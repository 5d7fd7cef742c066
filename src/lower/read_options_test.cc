#include "lower/read_options.h"

#include <gtest/gtest.h>

#include "lower/targets.h"
#include "support/manifests.h"

namespace capgate::lower {
namespace {

// What print_json writes of these options.
std::string written(const Options& options) {
  const auto document = support::json_document(support::manifest_json({{"clock:system"}}));
  const auto manifest = core::parse_manifest(document, {});
  const auto policy = core::merge(*manifest);
  const Input input{*manifest, *policy, options};
  return print_json(Artifact{.target = "bwrap"}, input, text::JsonWriter::Style::compact);
}

std::expected<Options, std::string> read(const std::string& artifact) {
  const auto document = support::json_document(artifact);
  return read_options(*document.root().find("provenance")->find("options"));
}

TEST(ReadOptions, ReadsEverythingThatIsWritten) {
  const Options all{.home = "/home/a",
                    .runtime_dir = "/run/user/1",
                    .programs = {"/usr/bin/node", "/usr/bin/git"},
                    .accepted = {},
                    .tool = "t",
                    .seal = true,
                    .user = "1:2",
                    .writable_root = true,
                    .image = "a:1",
                    .broker_image = "b:1",
                    .rootful = true,
                    .cilium = true,
                    .command = {"node", "a b", ""},
                    .egress_target = "squid",
                    .egress_dir = "/run/other",
                    .egress_port = 4000,
                    .script = true,
                    .arch = Arch::aarch64,
                    .validators = {}};
  const std::string artifact = written(all);
  const auto again = read(artifact);
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(written(*again), artifact);
  EXPECT_EQ(again->command, all.command);
  EXPECT_EQ(again->egress_port, 4000);
  EXPECT_TRUE(again->cilium && again->rootful && again->script && again->seal &&
              again->writable_root);
}

TEST(ReadOptions, TakesDefaultsForWhatIsNotWritten) {
  const auto again = read(written({}));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(written(*again), written({}));
}

TEST(ReadOptions, RefusesWhatItDoesNotKnow) {
  const auto error = [](const std::string& options) {
    const auto got = read(R"({"provenance": {"options": )" + options + "}}");
    return got ? std::string() : got.error();
  };
  EXPECT_NE(error("1"), "");
  EXPECT_NE(error(R"({"odd": true})"), "");
  EXPECT_NE(error(R"({"arch": "vax"})"), "");
  EXPECT_NE(error(R"({"seal": "true"})"), "");
  EXPECT_NE(error(R"({"command": ["a", 1]})"), "");
  EXPECT_NE(error(R"({"egressPort": 65536})"), "");
  EXPECT_NE(error(R"({"networkPolicy": "kubernetes"})"), "");
  EXPECT_EQ(error(R"({"networkPolicy": "cilium"})"), "");
}

}  // namespace
}  // namespace capgate::lower
