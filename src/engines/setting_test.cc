#include <gtest/gtest.h>
#include <unistd.h>

#include "base/format.h"
#include "base/ranges.h"
#include "core/manifest.h"
#include "core/merge.h"
#include "engines/engine.h"
#include "text/json.h"

namespace capgate::engines {
namespace {

struct Case {
  core::Manifest manifest;
  core::Policy policy;
  lower::Options options;
};

Case policy_of(const std::string& capabilities) {
  const auto document = text::parse_json(
      format(R"({{"name":"s","version":"1","tools":[{{"name":"t","capabilities":[{}]}}]}})",
             capabilities));
  EXPECT_TRUE(document);
  Case out;
  auto manifest = core::parse_manifest(*document, {});
  EXPECT_TRUE(manifest);
  if (manifest) out.manifest = *std::move(manifest);
  auto policy = core::merge(out.manifest);
  EXPECT_TRUE(policy);
  if (policy) out.policy = *std::move(policy);
  return out;
}

Wanted bwrap(std::vector<std::string> command) {
  return {.kind = Kind::bwrap,
          .command = std::move(command),
          .caller = {.path = "/usr/bin:/bin", .directory = "/", .home = "/home/nobody"}};
}

TEST(Setting, NamesAndKindsAreTheSame) {
  EXPECT_EQ(kind_of("native"), std::nullopt);
  for (const Kind kind : {Kind::bwrap, Kind::docker, Kind::podman}) {
    EXPECT_EQ(kind_of(name_of(kind)), kind);
    EXPECT_TRUE(contains(engine_names, name_of(kind)));
  }
}

TEST(Setting, TheProgramIsVisibleByItsNameAndByItsFile) {
  Case given = policy_of("");
  const auto setting = find_setting(bwrap({"sh", "-c", "true"}), given.policy, given.options);
  ASSERT_TRUE(setting) << setting.error().message;
  EXPECT_EQ(setting->command, (std::vector<std::string>{"/usr/bin/sh", "-c", "true"}));
  EXPECT_TRUE(contains(given.options.programs, "/usr/bin/sh"));
  EXPECT_TRUE(given.options.accepted.empty());
  EXPECT_TRUE(setting->place.empty());
}

TEST(Setting, LimitsThatCapgateHoldsAreAcceptedAndNoOther) {
  Case given = policy_of(R"("limit:memory:64M","limit:disk:1M","limit:time:5s")");
  const auto setting = find_setting(bwrap({"true"}), given.policy, given.options);
  ASSERT_TRUE(setting) << setting.error().message;
  EXPECT_EQ(setting->kept_limits, (std::vector<std::string>{"limit:memory:64M", "limit:time:5s"}));
  EXPECT_EQ(given.options.accepted, setting->kept_limits);

  lower::Artifact artifact;
  artifact.unenforced = {"limit:memory:64M", "net:listen:80"};
  take_over(*setting, artifact);
  EXPECT_EQ(artifact.unenforced, std::vector<std::string>{"net:listen:80"});
}

TEST(Setting, TheDeclaredNetworkHasAPlaceThatNoGrantHolds) {
  Case given = policy_of(R"("net:connect:a.test:443","fs:read:/var/tmp/**")");
  ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", "/var/tmp", 1), 0);
  const auto setting = find_setting(bwrap({"true"}), given.policy, given.options);
  ASSERT_TRUE(setting) << setting.error().message;
  EXPECT_TRUE(setting->place.starts_with("/tmp/capgate-"));
  EXPECT_EQ(given.options.egress_dir, setting->place + "/egress");
  EXPECT_NE(::access(setting->place.c_str(), F_OK), 0);  // nothing is made by looking
}

TEST(Setting, ACommandThatIsNotThereIsNotFound) {
  Case given = policy_of("");
  const auto setting = find_setting(bwrap({"nosuch"}), given.policy, given.options);
  ASSERT_FALSE(setting);
  EXPECT_EQ(setting.error().exit_code, 127);
}

}  // namespace
}  // namespace capgate::engines
