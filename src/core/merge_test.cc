// Merging programs, variables, limits and the rest, and what holds for a policy as a whole. Files
// and net rules have tests of their own.
#include "core/merge.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/format.h"
#include "support/generators.h"
#include "support/manifests.h"
#include "support/timing.h"

namespace capgate::core {
namespace {

using support::manifest_json;
using support::merged;
using support::merged_lines;
using support::read_manifest;
using support::Strings;
using support::try_merge;

TEST(Merge, ProgramsUniteTheirNesting) {
  EXPECT_EQ(merged_lines({"exec:spawn:zsh", "exec:spawn:git", "exec:spawn:git"}),
            (Strings{"exec:spawn:git", "exec:spawn:zsh"}));
  EXPECT_EQ(merged_lines({"exec:spawn:node", "exec:spawn:node?nestedSandbox=true", "exec:spawn:a"}),
            (Strings{"exec:spawn:a", "exec:spawn:node?nestedSandbox=true"}));
}

TEST(Merge, D11InjectBeatsReadAndNothingIsTwice) {
  EXPECT_EQ(merged_lines({"env:read:A", "env:inject:A"}), Strings{"env:inject:A"});
  EXPECT_EQ(merged_lines({"env:inject:A", "env:read:A"}), Strings{"env:inject:A"});
  EXPECT_EQ(merged_lines({"env:read:A", "env:read:A"}), Strings{"env:read:A"});
  EXPECT_EQ(merged_lines({"env:read:A", "env:inject:A?to=h:1"}), Strings{"env:inject:A?to=h:1"});
  EXPECT_EQ(merged_lines({"env:read:DISPLAY", "ipc:connect:x11", "env:read:DISPLAY"}),
            (Strings{"env:read:DISPLAY", "ipc:connect:x11"}));
}

TEST(Merge, SealedVariablesUniteTheirEndpoints) {
  EXPECT_EQ(merged_lines({"env:inject:A?to=h:2", "env:inject:A?to=h:1&to=h:2"}),
            Strings{"env:inject:A?to=h:1&to=h:2"});
}

void expect_conflict(const Strings& capabilities, std::size_t culprit) {
  SCOPED_TRACE(capabilities[culprit]);
  const std::string source = manifest_json({capabilities});
  const auto manifest = read_manifest(source);
  ASSERT_TRUE(manifest);
  const auto policy = merge(*manifest);
  ASSERT_FALSE(policy);
  ASSERT_EQ(policy.error().size(), 1U);
  EXPECT_EQ(code_name(policy.error()[0].code), "POLICY_CONFLICT");
  EXPECT_EQ(policy.error()[0].where, manifest->declared[culprit].where);
}

TEST(Merge, RefusesWhatNoUnionKeeps) {
  expect_conflict({"assert:a:\"x\"", "assert:a:\"y\""}, 1);
  expect_conflict({"assert:a", "assert:a:\"y\""}, 1);
  expect_conflict({"env:inject:A?to=h:1", "env:inject:A"}, 1);
  expect_conflict({"env:inject:A", "env:inject:A?to=h:1"}, 1);
  expect_conflict({"env:inject:A?to=h:1&as=body", "env:inject:A?to=h:1&as=path"}, 1);
  EXPECT_TRUE(try_merge({"assert:a:\"x\"", "assert:a:\"x\""}));
}

TEST(Merge, APublicPolicyNamesNoPrivateEndpoint) {
  const std::string assertion = "assert:fetch.block_rfc1918:\"no private ranges\"";
  EXPECT_TRUE(try_merge({assertion, "net:connect:*", "net:connect:8.8.8.8:443"}));
  EXPECT_TRUE(try_merge({"assert:fetch.block", "net:connect:10.0.0.5:80"}));
  for (const std::string_view host : {"10.0.0.5", "localhost", "a.localhost", "[::1]"}) {
    const auto manifest = *read_manifest(manifest_json(
        {{"net:connect:a.test:443", assertion}, {format("net:connect:{}:80", host)}}));
    const auto policy = merge(manifest);
    ASSERT_FALSE(policy) << host;
    ASSERT_EQ(policy.error().size(), 2U) << "both places";
    EXPECT_EQ(code_name(policy.error()[0].code), "POLICY_CONFLICT");
    EXPECT_EQ(policy.error()[0].where, manifest.declared[1].where);
    EXPECT_TRUE(policy.error()[0].message.contains(format("net:connect:{}:80", host)));
    EXPECT_EQ(policy.error()[1].where, manifest.declared[2].where);
    EXPECT_TRUE(policy.error()[1].message.contains("assert:fetch.block_rfc1918"));
    EXPECT_TRUE(merge(manifest, 0)) << "the tool without it";
  }
}

TEST(Merge, ReportsEveryConflictInOrder) {
  const auto policy =
      try_merge({"assert:a:x", "env:inject:A", "env:inject:A?to=h:1", "assert:a:y"});
  ASSERT_FALSE(policy);
  ASSERT_EQ(policy.error().size(), 2U);
  EXPECT_LT(policy.error()[0].where.begin, policy.error()[1].where.begin);
}

TEST(Merge, TheLargestLimitWins) {
  EXPECT_EQ(
      merged_lines({"limit:memory:512M", "limit:memory:1G", "limit:pids:5", "limit:memory:1M"}),
      (Strings{"limit:memory:1G", "limit:pids:5"}));
}

TEST(Merge, SocketsClocksAndListenersOnce) {
  EXPECT_EQ(
      merged_lines({"ipc:connect:x11", "ipc:connect:dbus:session", "ipc:connect:x11",
                    "ipc:connect:\"unix:/run/a\"", "ipc:connect:unix:/run//a"}),
      (Strings{"ipc:connect:dbus:session", "ipc:connect:\"unix:/run/a\"", "ipc:connect:x11"}));
  EXPECT_EQ(merged_lines({"clock:tzdata", "clock:system", "clock:tzdata"}),
            (Strings{"clock:system", "clock:tzdata"}));
  EXPECT_EQ(merged_lines({"net:listen:9000", "net:listen:80", "net:listen:9000"}),
            (Strings{"net:listen:80", "net:listen:9000"}));
}

TEST(Merge, OneToolHasItsOwnAndTheServersCapabilities) {
  const auto manifest = read_manifest(
      R"({"name":"s","version":"1","serverCapabilities":["clock:system"],"tools":[
         {"name":"a","capabilities":["fs:read:/a"]},{"name":"b","capabilities":["fs:write:/b"]}]})");
  ASSERT_TRUE(manifest);
  EXPECT_EQ(policy_lines(*merge(*manifest)),
            (Strings{"fs:read:/a", "fs:write:/b", "clock:system"}));
  EXPECT_EQ(policy_lines(*merge(*manifest, manifest->find_tool("a"))),
            (Strings{"fs:read:/a", "clock:system"}));
  EXPECT_EQ(policy_lines(*merge(*manifest, manifest->find_tool("b"))),
            (Strings{"fs:write:/b", "clock:system"}));
}

TEST(Merge, NothingDeclaredGrantsNothing) {
  EXPECT_EQ(merged_lines({}), Strings{});
  EXPECT_EQ(policy_hash(merged({})), policy_hash(Policy{}));
}

// ---- Whole policies --------------------------------------------------------------------------

// Any kinds together; assertions and sealed variables that conflict are left out.
Strings mixed_capabilities() {
  Strings lines;
  const int count = *rc::gen::element(1, 2, 4, 8, 16);
  for (int i = 0; i < count; ++i) {
    const auto grantable = support::make_grantable(*support::capability());
    if (!grantable) continue;
    lines.push_back(print(*grantable));
    if (!try_merge(lines)) lines.pop_back();
  }
  return lines;
}

RC_GTEST_PROP(Policy, DoesNotDependOnTheOrder, ()) {
  const Strings lines = mixed_capabilities();
  const Policy policy = merged(lines);
  const Policy other = merged(support::shuffled(lines));
  RC_ASSERT(policy_lines(policy) == policy_lines(other));
  RC_ASSERT(policy_hash(policy) == policy_hash(other));
}

RC_GTEST_PROP(Policy, DoesNotDependOnRepetitionOrTheToolThatAsks, ()) {
  const Strings lines = mixed_capabilities();
  const auto manifest = read_manifest(manifest_json({lines, {}, lines, support::shuffled(lines)}));
  RC_ASSERT(manifest.has_value());
  RC_ASSERT(policy_lines(*merge(*manifest)) == merged_lines(lines));
}

RC_GTEST_PROP(Policy, DeclaredAgainGivesItself, ()) {
  const Strings once = merged_lines(mixed_capabilities());
  RC_ASSERT(merged_lines(once) == once);
}

RC_GTEST_PROP(Policy, D28HashChangesExactlyWithTheLines, ()) {
  const Strings one = mixed_capabilities();
  Strings two = one;
  if (!two.empty() && support::flip()) two.pop_back();
  const Policy first = merged(one);
  const Policy second = merged(two);
  RC_ASSERT((policy_lines(first) == policy_lines(second)) ==
            (policy_hash(first) == policy_hash(second)));
  RC_ASSERT(policy_hash(first).starts_with("sha256:"));
  RC_ASSERT(policy_hash(first).size() == 71U);
}

RC_GTEST_PROP(Policy, EveryDeclarationIsTheOriginOfAGrant, ()) {
  const Strings lines = mixed_capabilities();
  std::set<std::uint32_t> seen;
  for_each_grant(merged(lines), [&](const Capability& capability, const Origins& origins) {
    RC_ASSERT(!origins.empty());
    RC_ASSERT(std::ranges::is_sorted(origins));
    RC_ASSERT(std::ranges::adjacent_find(origins) == origins.end());
    for (const std::uint32_t origin : origins) {
      const auto declared = parse_capability(lines[origin], {});
      RC_ASSERT(kind_name(declared->front()) == kind_name(capability));
      seen.insert(origin);
    }
  });
  RC_ASSERT(seen.size() == lines.size());
}

// ---- Cost ------------------------------------------------------------------------------------

template <typename Line>
double merge_seconds(std::size_t count, Line line) {
  Strings lines;
  for (std::size_t i = 0; i < count; ++i) lines.push_back(line(i));
  const auto manifest = read_manifest(manifest_json({lines}));
  EXPECT_TRUE(manifest);
  return support::shortest_seconds([&] { EXPECT_TRUE(merge(*manifest)); });
}

// Sixteen times as many capabilities cost about twenty times as much; a quadratic merge would take
// 256 times as long. The factor leaves room for a busy machine and for caches.
template <typename Line>
void expect_no_quadratic_growth(Line line) {
  const double few = merge_seconds(500, line);
  const double many = merge_seconds(8000, line);
  EXPECT_LT(many, 160 * few);
}

TEST(Merge, D29CostOfDistinctPathsIsNotQuadratic) {
  expect_no_quadratic_growth([](std::size_t i) { return format("fs:read:/w/{}/f{}", i % 97, i); });
}

TEST(Merge, D29CostOfNestedPathsIsNotQuadratic) {
  expect_no_quadratic_growth([](std::size_t i) {
    return format("fs:{}:/w/{}/x", i % 2 == 0 ? "create" : "delete", i / 2);
  });
}

TEST(Merge, D29CostOfEntriesIsNotQuadratic) {
  expect_no_quadratic_growth([](std::size_t i) { return format("fs:read:/w/f{}*", i); });
}

TEST(Merge, D29CostOfHostsIsNotQuadratic) {
  expect_no_quadratic_growth([](std::size_t i) { return format("net:connect:h{}.a.com:443", i); });
}

TEST(Merge, D29CostOfRefinedRulesIsNotQuadratic) {
  expect_no_quadratic_growth(
      [](std::size_t i) { return format("net:connect:a:443?paths=/{}", i); });
}

TEST(Merge, D29CostOfSealedEndpointsIsNotQuadratic) {
  expect_no_quadratic_growth([](std::size_t i) { return format("env:inject:T?to=h{}.a:443", i); });
}

}  // namespace
}  // namespace capgate::core
