// The net:connect part of a merge against a slow oracle over a small universe of requests.
#include "core/merge_net.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/ranges.h"
#include "support/generators.h"
#include "support/manifests.h"

namespace capgate::core {
namespace {

using support::merged;
using support::merged_lines;
using support::Strings;

TEST(MergeNet, RulesFoldIntoTheOnesThatCoverThem) {
  EXPECT_EQ(merged_lines({"net:connect:a.com", "net:connect:a.com:443"}),
            Strings{"net:connect:a.com"});
  EXPECT_EQ(merged_lines({"net:connect:*:443", "net:connect:a.com:443", "net:connect:b.com:80"}),
            (Strings{"net:connect:*:443", "net:connect:b.com:80"}));
  EXPECT_EQ(merged_lines({"net:connect:*.a.com:443", "net:connect:x.a.com:443",
                          "net:connect:*.x.a.com:443", "net:connect:a.com:443"}),
            (Strings{"net:connect:*.a.com:443", "net:connect:a.com:443"}));
  EXPECT_EQ(merged_lines({"net:connect:API.a.com:443", "net:connect:api.a.com.:443"}),
            Strings{"net:connect:api.a.com:443"});
  EXPECT_EQ(merged_lines({"net:connect:\"::1\":443", "net:connect:[0::1]:443"}),
            Strings{"net:connect:[::1]:443"});
}

TEST(MergeNet, PrivateEndpointsStayBesideTheWildcard) {
  EXPECT_EQ(merged_lines({"net:connect:*", "net:connect:10.0.0.1:80", "net:connect:localhost:3000",
                          "net:connect:8.8.8.8:53"}),
            (Strings{"net:connect:*", "net:connect:localhost:3000", "net:connect:10.0.0.1:80"}));
}

TEST(MergeNet, RefinementsOnlyFoldIntoWiderOnes) {
  EXPECT_EQ(merged_lines({"net:connect:a:443?methods=GET", "net:connect:a:443"}),
            Strings{"net:connect:a:443"});
  EXPECT_EQ(merged_lines({"net:connect:*:443?methods=GET", "net:connect:a:443"}),
            (Strings{"net:connect:*:443?methods=GET", "net:connect:a:443"}));
  EXPECT_EQ(merged_lines({"net:connect:*:443?methods=GET", "net:connect:a:443?methods=GET"}),
            Strings{"net:connect:*:443?methods=GET"});
  EXPECT_EQ(merged_lines({"net:connect:a:443?sni=any", "net:connect:a:443"}),
            (Strings{"net:connect:a:443", "net:connect:a:443?sni=any"}));
}

TEST(MergeNet, PrivateIsWiderThanTheSameRuleWithoutIt) {
  EXPECT_EQ(merged_lines({"net:connect:a:443", "net:connect:a:443?private=true"}),
            Strings{"net:connect:a:443?private=true"});
  EXPECT_EQ(merged_lines({"net:connect:*.a?private=true", "net:connect:b.a:443?methods=GET",
                          "net:connect:b.a:443?private=true", "net:connect:a:443"}),
            (Strings{"net:connect:*.a?private=true", "net:connect:a:443"}));
  EXPECT_EQ(merged_lines({"net:connect:*", "net:connect:a:443?private=true"}),
            (Strings{"net:connect:*", "net:connect:a:443?private=true"}));
  EXPECT_EQ(merged_lines({"net:connect:a:443", "net:connect:a:443?methods=GET&private=true"}),
            (Strings{"net:connect:a:443", "net:connect:a:443?methods=GET&private=true"}));
  EXPECT_EQ(merged_lines({"net:connect:a:443?sni=any", "net:connect:a:443?private=true"}),
            (Strings{"net:connect:a:443?private=true", "net:connect:a:443?sni=any"}));
}

// ---- The oracle ------------------------------------------------------------------------------

struct Request {
  Endpoint to;
  NetRefinements as;  // one method and one path; whether the address is a private one
};

bool slow_allows(const NetConnect& rule, const Request& request) {
  const NetRefinements& refine = rule.refinements;
  return refine.sni == request.as.sni && refine.proto == request.as.proto &&
         (refine.private_network || !request.as.private_network) &&
         (refine.methods.empty() || contains(refine.methods, request.as.methods[0])) &&
         (refine.paths.empty() || contains(refine.paths, request.as.paths[0])) &&
         matches(rule.endpoint, request.to);
}

std::vector<Request> universe() {
  using enum NetRefinements::Sni;
  std::vector<Request> requests;
  for (const char* host : {"a", "b.a", "ab.a", "c.b.a", "x.c.b.a", "z", "8b.com", "1.8b.com",
                           "localhost", "a.localhost", "8.8.8.8", "10.0.0.1", "127.0.0.1", "[::1]",
                           "[2606:4700::1]", "[fd00::1]", "[2606:4700::2]"}) {
    for (const char* port : {":80", ":443", ":1"}) {
      for (const char* method : {"GET", "POST"}) {
        for (const char* path : {"/a", "/b"}) {
          for (const auto sni : {match, any}) {
            for (const bool is_private : {false, true}) {
              requests.push_back({.to = *parse_endpoint(std::string(host) + port),
                                  .as = {.sni = sni,
                                         .methods = {method},
                                         .paths = {path},
                                         .private_network = is_private}});
            }
          }
        }
      }
    }
  }
  return requests;
}

NetConnect small_rule() {
  NetConnect rule = support::net_connect(*support::endpoint());
  rule.refinements = {.private_network = rule.refinements.private_network};
  if (*rc::gen::element(0, 0, 1) == 0) return rule;
  using enum NetRefinements::Sni;
  rule.refinements.sni = *rc::gen::element(match, match, any);
  if (support::flip()) rule.refinements.methods = support::sorted_choices({"GET", "POST"});
  if (support::flip()) rule.refinements.paths = support::sorted_choices({"/a", "/b"});
  return rule;
}

std::vector<NetConnect> small_rules() {
  std::vector<NetConnect> rules;
  const int count = *rc::gen::element(1, 2, 3, 5, 8, 12);
  for (int i = 0; i < count; ++i) rules.push_back(small_rule());
  return rules;
}

Strings print_all(const std::vector<NetConnect>& rules) {
  Strings lines;
  for (const NetConnect& rule : rules) lines.push_back(print(Capability(rule)));
  return lines;
}

RC_GTEST_PROP(MergeNet, AllowsExactlyTheUnion, ()) {
  static const std::vector<Request> requests = universe();
  for (int i = 0; i < 5; ++i) {
    const auto rules = small_rules();
    const Policy policy = merged(print_all(rules));
    RC_LOG() << rc::toString(print_all(rules)) << " -> " << rc::toString(policy_lines(policy))
             << "\n";
    for (const Request& request : requests) {
      const bool declared = std::ranges::any_of(
          rules, [&](const NetConnect& rule) { return slow_allows(rule, request); });
      const bool granted = std::ranges::any_of(policy.connect, [&](const auto& grant) {
        return slow_allows(grant.capability, request);
      });
      RC_ASSERT(declared == granted);
    }
  }
}

RC_GTEST_PROP(MergeNet, KeepsNoRuleThatAnotherOneCovers, ()) {
  const Policy policy = merged(print_all(small_rules()));
  for (const auto& wide : policy.connect) {
    for (const auto& narrow : policy.connect) {
      const NetRefinements& refine = wide.capability.refinements;
      const NetRefinements& other = narrow.capability.refinements;
      const bool is_plain = refine.methods.empty() && refine.paths.empty();
      const bool is_alike = refine.methods == other.methods && refine.paths == other.paths;
      const bool covered = matches(wide.capability.endpoint, narrow.capability.endpoint) &&
                           (is_plain || is_alike) && refine.sni == other.sni &&
                           refine.proto == other.proto &&
                           (refine.private_network || !other.private_network);
      RC_ASSERT(&wide == &narrow || !covered);
    }
  }
}

RC_GTEST_PROP(MergeNet, EveryDeclarationIsTheOriginOfARuleThatCoversIt, ()) {
  const auto rules = small_rules();
  std::set<std::uint32_t> seen;
  for (const auto& grant : merged(print_all(rules)).connect) {
    RC_ASSERT(std::ranges::is_sorted(grant.origins));
    for (const std::uint32_t origin : grant.origins) {
      RC_ASSERT(matches(grant.capability.endpoint, rules[origin].endpoint));
      seen.insert(origin);
    }
  }
  RC_ASSERT(seen.size() == rules.size());
}

RC_GTEST_PROP(MergeNet, DoesNotDependOnTheOrder, ()) {
  const Strings lines = print_all(small_rules());
  RC_ASSERT(merged_lines(lines) == merged_lines(support::shuffled(lines)));
}

RC_GTEST_PROP(MergeNet, IsIdempotent, ()) {
  const Strings once = merged_lines(print_all(small_rules()));
  RC_ASSERT(merged_lines(once) == once);
}

}  // namespace
}  // namespace capgate::core
