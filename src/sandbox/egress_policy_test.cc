#include "sandbox/egress_policy.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::sandbox {
namespace {

using support::Lowered;

TEST(EgressPolicy, IsWhatThePlanSays) {
  const Lowered lowered("plan", {"net:connect:b.example:443?sni=any", "net:connect:a.example"});
  lower::Plan plan = *lowered.artifact().plan;
  plan.network.rules[0].position = "m.json:3:7";
  const egress::Policy policy = egress_policy(plan, {.sandbox = "5f2c", .policy_hash = "sha256:0"});
  EXPECT_EQ(policy.server, "s");
  EXPECT_EQ(policy.sandbox, "5f2c");
  EXPECT_EQ(policy.hash, "sha256:0");
  ASSERT_EQ(policy.rules.size(), 2U);
  EXPECT_EQ(policy.rules[0].text, "net:connect:a.example");
  EXPECT_EQ(policy.rules[0].position, "m.json:3:7");
  EXPECT_EQ(policy.rules[1].text, "net:connect:b.example:443?sni=any");
  EXPECT_FALSE(policy.public_only);
  plan.network.public_only = true;
  EXPECT_TRUE(egress_policy(plan, {}).public_only);
}

TEST(EgressPolicy, KnowsWhichConnectionsAreLacking) {
  const auto connects =
      connects_of({.entry = "x",
                   .capabilities = {"fs:read:/a", "net:connect:a.example:5432", "net:listen:80"}});
  ASSERT_EQ(connects.size(), 1U);
  EXPECT_EQ(print(core::Capability(connects[0])), "net:connect:a.example:5432");
}

TEST(EgressPolicy, ReachesTheBrokerUnchanged) {
  const Lowered lowered(
      "plan", {"net:connect:*.example:443?methods=GET&private=true&proto=http&sni=strict"});
  const egress::Policy policy = egress_policy(*lowered.artifact().plan, {});
  const auto read = egress::read_policy(egress::print_policy(policy));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->rules.size(), 1U);
  EXPECT_EQ(read->rules[0].connect, policy.rules[0].connect);
}

}  // namespace
}  // namespace capgate::sandbox
