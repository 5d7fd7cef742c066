#include "core/prepare.h"

#include <gtest/gtest.h>

#include "support/manifests.h"
#include "text/json.h"

namespace capgate::core {
namespace {

using support::manifest_json;
using support::read_manifest;

const Bindings root = {{.name = "ROOT", .values = {"/a"}}};

// The message about the first wrong binding, or "ok".
std::string mistake(const Bindings& bindings, const std::vector<std::string>& capabilities) {
  const auto manifest = read_manifest(manifest_json({capabilities}), bindings);
  EXPECT_TRUE(manifest);
  const auto found = find_binding_mistake(bindings, *manifest, "--set ");
  return found ? found->message : "ok";
}

TEST(Prepare, BindingsThatNothingUsesAreMistakes) {
  EXPECT_EQ(mistake(root, {"fs:read:${ROOT}/x"}), "ok");
  EXPECT_EQ(mistake(root, {"fs:read:/x"}), "--set ROOT is not used");
}

TEST(Prepare, DirectoriesOfTheHostAreOneAbsolutePath) {
  EXPECT_EQ(mistake({{.name = "HOME", .values = {"/home/me"}}}, {}), "ok");
  for (const std::vector<std::string>& values :
       std::vector<std::vector<std::string>>{{}, {""}, {"/"}, {"home"}, {"/home/a", "/home/b"}}) {
    EXPECT_EQ(mistake({{.name = "HOME", .values = values}}, {}),
              "--set HOME takes one absolute path");
  }
  EXPECT_EQ(host_path({{.name = "HOME", .values = {"/home//me/"}}}, "HOME"), "/home/me");
  EXPECT_EQ(host_path({}, "HOME"), "");
}

TEST(Prepare, APolicyIsOfTheChosenToolAndSealedAsAsked) {
  auto manifest =
      read_manifest(manifest_json({{"net:connect:a.example:443", "env:inject:TOKEN"}}), {});
  ASSERT_TRUE(manifest);
  const auto open = make_policy(*manifest, {});
  ASSERT_TRUE(open);
  EXPECT_EQ(policy_lines(*open).back(), "env:inject:TOKEN");
  const auto sealed = make_policy(*manifest, {.tool = {}, .seal = true});
  ASSERT_TRUE(sealed);
  EXPECT_EQ(policy_lines(*sealed).back(), "env:inject:TOKEN?to=a.example:443");
  const auto unknown = make_policy(*manifest, {.tool = "none"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().front().code, Code::tool_unknown);
}

TEST(Prepare, AnOutlineNeedsNoValuesAndFindsOtherMistakes) {
  const auto outline = [](const std::vector<std::string>& capabilities) {
    return outline_manifest(*text::parse_json(manifest_json({capabilities})));
  };
  const auto good = outline({"fs:read:${ROOT}/**", "fs:read:/b"});
  ASSERT_TRUE(good);
  EXPECT_EQ(good->declared.size(), 1U);
  EXPECT_EQ(good->used_variables, std::vector<std::string>{"ROOT"});
  const auto bad = outline({"fs:read:${ROOT}/**", "fs:read:b", "fs:read:${open"});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().size(), 2U);
}

}  // namespace
}  // namespace capgate::core
