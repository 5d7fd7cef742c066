#include "lower/to_plan.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

const PlanMount* find_mount(const Lowered& lowered, std::string_view target) {
  const auto& mounts = lowered.artifact().plan->mounts;
  const auto it = std::ranges::find(mounts, target, &PlanMount::target);
  return it == mounts.end() ? nullptr : &*it;
}

std::vector<std::string_view> rights(const Lowered& lowered, std::string_view path) {
  for (const LandlockRule& rule : lowered.artifact().plan->landlock) {
    if (rule.path == path) return rule.rights;
  }
  return {};
}

bool holds(const std::vector<std::string_view>& list, std::string_view item) {
  return std::ranges::find(list, item) != list.end();
}

TEST(Plan, EachActionHasItsOwnLandlockRights) {
  const Lowered plan("plan", {"fs:read:/r", "fs:create:/c", "fs:delete:/d", "fs:write:/w"});
  EXPECT_EQ(rights(plan, "/r"), (std::vector<std::string_view>{"read_file", "read_dir"}));
  EXPECT_TRUE(holds(rights(plan, "/c"), "make_reg"));
  EXPECT_FALSE(holds(rights(plan, "/c"), "remove_file"));
  EXPECT_TRUE(holds(rights(plan, "/d"), "remove_file"));
  EXPECT_FALSE(holds(rights(plan, "/d"), "write_file"));
  EXPECT_TRUE(holds(rights(plan, "/w"), "refer"));
}

TEST(Plan, DevicesCanBeMadeNowhereAndSocketsOnlyInPrivatePlaces) {
  const Lowered plan("plan", {"fs:write:/w/**"});
  for (const LandlockRule& rule : plan.artifact().plan->landlock) {
    EXPECT_FALSE(holds(rule.rights, "make_char") || holds(rule.rights, "make_block")) << rule.path;
    const bool is_private =
        rule.path == "/tmp" || rule.path == "/dev/shm" || rule.path == "${HOME}";
    EXPECT_EQ(holds(rule.rights, "make_sock"), is_private) << rule.path;
  }
}

TEST(Plan, ParentsAreMountedBeforeTheirChildren) {
  const Lowered plan("plan", {"fs:write:/t/out/**", "fs:read:/t/**"});
  EXPECT_LT(find_mount(plan, "/t"), find_mount(plan, "/t/out"));
  EXPECT_EQ(find_mount(plan, "/t")->detail, "read");
  EXPECT_EQ(find_mount(plan, "/t/out")->detail, "write");
}

TEST(Plan, WhatOnlyTheHostKnowsIsAHole) {
  const Lowered plan(
      "plan", {"exec:spawn:git", "fs:read:/n/*.md", "ipc:connect:x11", "ipc:connect:dbus:session"});
  Strings names;
  for (const PlanHole& hole : plan.artifact().plan->holes) names.push_back(hole.name);
  EXPECT_EQ(names, (Strings{"HOME", "IDS", "PROGRAM", "EXEC:git", "GLOB:/n/*.md", "XDG_RUNTIME_DIR",
                            "DISPLAY"}));
}

TEST(Plan, MasksCredentialsAndNamesProtectedFilesOfWritableGrants) {
  const Lowered plan("plan", {"fs:write:/home/u/.config/**"});
  ASSERT_NE(find_mount(plan, "/home/u/.config/gh"), nullptr);
  EXPECT_EQ(find_mount(plan, "/home/u/.config/gh")->kind, PlanMount::Kind::mask);
  EXPECT_FALSE(plan.artifact().plan->protected_names.empty());
  EXPECT_TRUE(Lowered("plan", {"fs:read:/w"}).artifact().plan->protected_names.empty());
}

TEST(Plan, ListenersFollowTheDeclaredPorts) {
  const Lowered plan("plan", {"net:connect:a.example:443", "net:connect:b.example:443",
                              "net:connect:c.example:80", "net:listen:9000"});
  const PlanNetwork& network = plan.artifact().plan->network;
  EXPECT_EQ(network.listeners, (std::vector<std::uint16_t>{80, 443}));
  EXPECT_EQ(network.published, (std::vector<std::uint16_t>{9000}));
  EXPECT_TRUE(network.dns);
  EXPECT_FALSE(network.every_port);
  EXPECT_TRUE(Lowered("plan", {"net:connect:*"}).artifact().plan->network.every_port);
  EXPECT_FALSE(Lowered("plan", {}).artifact().plan->network.dns);
}

TEST(Plan, StatedLimitsAreRequiredAndDefaultsAreNot) {
  const Lowered plan("plan", {"limit:memory:1G"});
  for (const PlanLimit& limit : plan.artifact().plan->limits) {
    EXPECT_EQ(limit.is_default, limit.name != "memory") << limit.name;
  }
}

TEST(Plan, SealedValuesAreRefusedUntilTheyExist) {
  EXPECT_EQ(Lowered("plan", {"env:inject:A?to=h.example:443"}).verdict(), "ADAPTER_UNSUPPORTED");
}

}  // namespace
}  // namespace capgate::lower
