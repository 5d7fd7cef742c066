#include "egress/decide.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/format.h"
#include "core/grammar.h"
#include "egress/policy.h"
#include "support/endpoint_vectors.h"
#include "support/flow_vectors.h"
#include "support/generators.h"

namespace capgate::egress {
namespace {

using support::host_of;
using support::policy_of;

// ---- The vector files ------------------------------------------------------------------------

std::string outcome(const Verdict& verdict) {
  std::string out(reason_name(verdict.reason));
  if (verdict.inner_name_unverified) out += " inner-name-unverified";
  constexpr std::string_view prefix = "net:connect:";
  return out + '\t' + (verdict.rule == nullptr ? "-" : verdict.rule->text.substr(prefix.size()));
}

TEST(Decide, AnswersAsTheVectorFileSays) {
  const auto vectors = support::flow_vectors();
  EXPECT_GE(vectors.size(), 180U);
  for (const auto& vector : vectors) {
    EXPECT_EQ(outcome(decide(vector.policy, vector.flow)), vector.expected) << vector.line;
  }
}

TEST(Decide, CoversTheEndpointsOfTheVectorFile) {
  using Verdict = support::EndpointVector::Verdict;
  int asked = 0;
  for (const auto& vector : support::endpoint_vectors()) {
    if (vector.verdict != Verdict::yes && vector.verdict != Verdict::no) continue;
    const core::Endpoint to = *core::parse_endpoint(vector.destination);
    const bool is_wild = to.host.kind == core::HostPattern::Kind::any ||
                         to.host.kind == core::HostPattern::Kind::subdomains;
    if (is_wild || !to.port) continue;
    ++asked;
    const Policy policy = policy_of({vector.rule});
    EXPECT_EQ(decide(policy, {.host = to.host, .port = *to.port}).is_allowed(),
              vector.verdict == Verdict::yes)
        << vector.line;
  }
  EXPECT_GE(asked, 80);
}

// ---- Properties ------------------------------------------------------------------------------

core::HostPattern some_host() {
  return host_of(support::pick({"a", "b.a", "c.b.a", "localhost", "8.8.8.8", "10.0.0.1",
                                "127.0.0.1", "::1", "2606:4700::1", "8b.com"}));
}

std::optional<core::HostPattern> some_address() {
  if (support::flip()) return {};
  return host_of(support::pick({"8.8.8.8", "10.0.0.1", "127.0.0.1", "::1", "2606:4700::1"}));
}

Flow some_flow() {
  Flow flow{.host = some_host(), .port = *rc::gen::element<std::uint16_t>(80, 443, 5432)};
  flow.speech = *rc::gen::element(Speech::unknown, Speech::tls, Speech::http, Speech::other);
  if (support::flip()) flow.said = support::flip() ? flow.host : some_host();
  if (support::flip()) flow.said_port = *rc::gen::element<std::uint16_t>(80, 443);
  flow.said_is_invalid = !flow.said && support::flip();
  flow.encrypted_hello = support::flip();
  flow.terminated = support::flip();
  flow.method = support::pick({"GET", "POST", "get", "PUT\n", ""});
  flow.path = support::pick({"/", "/user", "/repos/x", "/repos/../x", "/a%20b"});
  flow.address = some_address();
  const bool is_address = flow.host.kind != core::HostPattern::Kind::name;
  if (flow.address && is_address) flow.address = flow.host;
  flow.address_is_own = flow.address && support::flip();
  return flow;
}

// Half of the rules cover the flow's endpoint, so that several often do.
Rule some_rule(const Flow& flow) {
  core::NetConnect connect{.endpoint = *support::endpoint()};
  if (support::flip()) connect.endpoint = {.host = flow.host, .port = flow.port};
  if (support::flip()) connect = support::net_connect(connect.endpoint);
  return {.connect = connect, .text = print(core::Capability(connect)), .position = "m.json:1:1"};
}

Policy some_policy(const Flow& flow) {
  Policy policy;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) policy.rules.push_back(some_rule(flow));
  policy.public_only = support::flip() && support::flip();
  return policy;
}

RC_GTEST_PROP(Decide, KnowingMoreNeverAllowsMore, ()) {
  const Flow flow = some_flow();
  const Policy policy = some_policy(flow);
  Flow less = flow;
  less.address.reset();
  less.address_is_own = false;
  Flow least{.host = flow.host, .port = flow.port};
  Flow hello = flow;  // before the first request inside TLS
  if (flow.speech == Speech::tls) hello.method.clear();
  if (decide(policy, flow).is_allowed()) RC_ASSERT(decide(policy, less).is_allowed());
  if (decide(policy, flow).is_allowed()) RC_ASSERT(decide(policy, hello).is_allowed());
  if (decide(policy, less).is_allowed()) RC_ASSERT(decide(policy, least).is_allowed());
}

RC_GTEST_PROP(Decide, AllowsExactlyWhatOneOfTheRulesAllows, ()) {
  const Flow flow = some_flow();
  const Policy policy = some_policy(flow);
  const bool alone = std::ranges::any_of(policy.rules, [&](const Rule& rule) {
    Policy one = policy;
    one.rules = {rule};
    return decide(one, flow).is_allowed();
  });
  RC_ASSERT(decide(policy, flow).is_allowed() == alone);
}

RC_GTEST_PROP(Decide, DoesNotDependOnTheOrderOfRules, ()) {
  const Flow flow = some_flow();
  Policy policy = some_policy(flow);
  const Verdict verdict = decide(policy, flow);
  const Rule explaining = verdict.rule == nullptr ? Rule{} : *verdict.rule;
  std::ranges::reverse(policy.rules);
  const Verdict again = decide(policy, flow);
  RC_ASSERT(again.is_allowed() == verdict.is_allowed());
  RC_ASSERT((again.rule == nullptr) == (verdict.rule == nullptr));
  if (again.rule != nullptr) RC_ASSERT(again.rule->connect.endpoint == explaining.connect.endpoint);
}

// But for a private address behind a name that nobody declared, where the program must ask for the
// address itself.
RC_GTEST_PROP(Decide, TheRemedyParsesAndAllowsTheFlow, ()) {
  const Flow flow = some_flow();
  Policy policy = some_policy(flow);
  const Verdict verdict = decide(policy, flow);
  const std::string text = remedy(verdict, flow);
  RC_PRE(!text.empty());
  const auto parsed = core::parse_capability(text, {});
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(print(parsed->front()) == text);
  RC_ASSERT(!verdict.is_allowed());

  Flow again = flow;
  const auto& connect = std::get<core::NetConnect>(parsed->front());
  const core::HostPattern& host = connect.endpoint.host;
  if (host != flow.host) again = {.host = host, .port = flow.port};
  RC_ASSERT(host == flow.host || verdict.reason == Reason::private_address);
  policy.rules.push_back({.connect = connect, .text = text, .position = ""});
  const Verdict helped = decide(policy, again);
  // One step at a time: what it complained about is gone.
  RC_ASSERT(helped.is_allowed() || helped.reason != verdict.reason || helped.rule->text != text);
}

RC_GTEST_PROP(Decide, ExplainsEveryVerdict, ()) {
  const Flow flow = some_flow();
  const Policy policy = some_policy(flow);
  const std::string words = explain(decide(policy, flow), flow);
  RC_ASSERT(!words.empty());
  RC_ASSERT(std::ranges::all_of(words, is_printable_ascii));
}

// ---- One by one ------------------------------------------------------------------------------

TEST(IsNameAllowed, OnSomePort) {
  const Policy policy = policy_of({"api.test:443", "*.b.test", "10.0.0.5:80", "localhost:5432"});
  for (const std::string_view name : {"api.test", "x.b.test", "localhost"}) {
    EXPECT_TRUE(is_name_allowed(policy, host_of(name))) << name;
  }
  for (const std::string_view name :
       {"test", "b.test", "x.api.test", "10.0.0.5", "app.localhost"}) {
    EXPECT_FALSE(is_name_allowed(policy, host_of(name))) << name;
  }
  EXPECT_FALSE(is_name_allowed(policy_of({"*"}), host_of("localhost")));
  EXPECT_FALSE(is_name_allowed(policy_of({"*"}), host_of("8.8.8.8")));
  EXPECT_FALSE(is_name_allowed(policy_of({"*"}), host_of("*.b.test")));
}

bool speaks_first(const std::vector<std::string>& rules, std::uint16_t port) {
  const Policy policy = policy_of(rules);
  return must_speak_first(decide(policy, {.host = host_of("a.test"), .port = port}));
}

TEST(MustSpeakFirst, OnWebPortsAndWhereARuleAsks) {
  EXPECT_TRUE(speaks_first({"a.test:443"}, 443));
  EXPECT_TRUE(speaks_first({"a.test"}, 80));
  EXPECT_TRUE(speaks_first({"a.test:22?proto=tls"}, 22));
  EXPECT_TRUE(speaks_first({"a.test:22?proto=http"}, 22));
  EXPECT_FALSE(speaks_first({"a.test:22"}, 22));
  EXPECT_FALSE(speaks_first({"a.test:443?proto=tcp"}, 443));
}

TEST(MustSpeakFirst, WhereTlsIsTerminatedWhateverTheRule) {
  for (const std::string_view rule : {"a.test:8443", "a.test:8443?proto=tcp"}) {
    const Policy policy = policy_of({std::string(rule)});
    Flow flow{.host = host_of("a.test"), .port = 8443};
    EXPECT_FALSE(must_speak_first(decide(policy, flow))) << rule;
    flow.terminated = true;
    EXPECT_TRUE(must_speak_first(decide(policy, flow))) << rule;
  }
  EXPECT_TRUE(speaks_first({"a.test:8443?methods=GET"}, 8443));
}

TEST(MustSpeakFirst, NotIfOneOfTheRulesDoesNotAsk) {
  EXPECT_FALSE(speaks_first({"a.test:22?proto=tls", "*:22"}, 22));
  EXPECT_FALSE(speaks_first({"*:22", "a.test:22?proto=tls"}, 22));
  EXPECT_FALSE(speaks_first({"a.test:1"}, 22)) << "it is refused, nobody waits";
}

struct Case {
  std::vector<std::string> rules;
  Flow flow;
  std::string_view explanation;
  std::string_view remedy;
};

std::vector<Case> refusals() {
  using enum Speech;
  const auto name = host_of("a.test");
  const std::vector<std::string> web{"a.test:443"};
  return {
      {{}, {.host = name, .port = 443}, "no rule covers a.test:443", "net:connect:a.test:443"},
      {{},
       {.host = host_of("2606:50c0::1"), .port = 443},
       "no rule covers [2606:50c0::1]:443",
       "net:connect:[2606:50c0::1]:443"},
      {{},
       {.host = host_of("10.0.0.5"), .port = 80},
       "no rule covers 10.0.0.5:80",
       "net:connect:10.0.0.5:80"},
      {{},
       {.host = host_of("169.254.169.254"), .port = 80},
       "no rule covers 169.254.169.254:80",
       ""},
      {{},
       {.host = host_of("100.100.100.200"), .port = 80},
       "no rule covers 100.100.100.200:80",
       ""},
      {{}, {.host = name, .port = 53}, "no rule covers a.test:53", ""},
      {web,
       {.host = name, .port = 443, .speech = tls},
       "TLS without SNI",
       "net:connect:a.test:443?sni=any"},
      {{"*:443"},
       {.host = name, .port = 443, .speech = tls},
       "TLS without SNI",
       "net:connect:a.test:443?sni=any"},
      {{"a.test:443?sni=strict"},
       {.host = name, .port = 443, .speech = tls},
       "TLS without SNI",
       ""},
      {web,
       {.host = name, .port = 443, .speech = http},
       "HTTP without a Host header",
       "net:connect:a.test:443?sni=any"},
      {web,
       {.host = name, .port = 443, .speech = tls, .said = host_of("evil.test")},
       "SNI names evil.test, the connection goes to a.test",
       ""},
      {web,
       {.host = name,
        .port = 443,
        .speech = tls,
        .said = host_of("evil.test"),
        .terminated = true,
        .method = "GET"},
       "Host names evil.test, the connection goes to a.test",
       ""},
      {web,
       {.host = name, .port = 443, .speech = http, .said = name, .said_port = std::uint16_t{80}},
       "Host names a.test:80, the connection goes to a.test:443",
       ""},
      {web,
       {.host = name, .port = 443, .speech = tls, .said_is_invalid = true},
       "SNI is not a host name, instead of a.test",
       ""},
      {web,
       {.host = name, .port = 443, .speech = other},
       "neither TLS nor HTTP/1.1 on port 443",
       "net:connect:a.test:443?proto=tcp"},
      {{"a.test:25?proto=tls"},
       {.host = name, .port = 25, .speech = http, .said = name},
       "plain HTTP where the rule wants TLS",
       "net:connect:a.test:25?proto=http"},
      {{"a.test:443?sni=strict"},
       {.host = name, .port = 443, .speech = tls, .said = name, .encrypted_hello = true},
       "the inner name is encrypted (ECH), and the rule says sni=strict",
       ""},
      {{"a.test:80?methods=GET&proto=http"},
       {.host = name, .port = 80, .speech = http, .said = name, .method = "PUT", .path = "/"},
       "the rule has no method \"PUT\"",
       "net:connect:a.test:80?methods=GET,PUT&proto=http"},
      {{"a.test:80?methods=GET&proto=http"},
       {.host = name, .port = 80, .speech = http, .said = name, .method = "put\x1b[31m"},
       "the rule has no method \"put\\x1b[31m\"",
       ""},
      {{"a.test:80?paths=/v1/**&proto=http"},
       {.host = name, .port = 80, .speech = http, .said = name, .path = "/v2/a"},
       "the rule has no path \"/v2/a\"",
       "net:connect:a.test:80?paths=/v1/**,/v2/a&proto=http"},
      {{"a.test:80?paths=/v1/**&proto=http"},
       {.host = name, .port = 80, .speech = http, .said = name, .path = "/v1/../a"},
       "the path \"/v1/../a\" can be read in more than one way",
       ""},
      {web, {.host = name, .port = 443, .speech = tls, .terminated = true}, "TLS without SNI", ""},
      {web,
       {.host = name, .port = 443, .speech = other, .terminated = true},
       "neither TLS nor HTTP/1.1 on port 443",
       ""},
      {{"a.test:443?methods=GET&paths=/v1/**"},
       {.host = name,
        .port = 443,
        .speech = tls,
        .said = name,
        .terminated = true,
        .method = "PUT",
        .path = "/v1/x"},
       "the rule has no method \"PUT\"",
       "net:connect:a.test:443?methods=GET,PUT&paths=/v1/**"},
      {{"a.test:443?methods=GET&paths=/v1/**"},
       {.host = name,
        .port = 443,
        .speech = tls,
        .said = name,
        .terminated = true,
        .method = "GET",
        .path = "/v2/x"},
       "the rule has no path \"/v2/x\"",
       "net:connect:a.test:443?methods=GET&paths=/v1/**,/v2/x"},
      {web,
       {.host = name, .port = 443, .address = host_of("10.0.0.5")},
       "a.test leads to 10.0.0.5, which is private, and the rule has no private=true",
       "net:connect:a.test:443?private=true"},
      {{"*.test?sni=any"},
       {.host = name, .port = 443, .address = host_of("203.0.113.5")},
       "a.test leads to 203.0.113.5, which is private, and the rule has no private=true",
       "net:connect:a.test:443?private=true&sni=any"},
      {{"*:443"},
       {.host = name, .port = 443, .address = host_of("10.0.0.5")},
       "a.test leads to 10.0.0.5, which is private; only a rule for the address itself reaches it",
       "net:connect:10.0.0.5:443"},
      {{"*:443"},
       {.host = name, .port = 443, .address = host_of("203.0.113.5")},
       "a.test leads to 203.0.113.5, which is private; only a rule for the address itself reaches "
       "it",
       ""},
      {{"a.test:443?private=true"},
       {.host = name, .port = 443, .address = host_of("127.0.0.1")},
       "a.test leads to 127.0.0.1, which is private; only a rule for the address itself reaches it",
       ""},
      {{"a.test:443?private=true", "assert:fetch.block_rfc1918"},
       {.host = name, .port = 443, .address = host_of("10.0.0.5")},
       "a.test leads to 10.0.0.5, which is private; assert:fetch.block_rfc1918 excludes it",
       ""},
      {web,
       {.host = name, .port = 443, .address = host_of("169.254.169.254")},
       "a.test leads to 169.254.169.254, which is private; only a rule for the address itself "
       "reaches it",
       ""},
      {web,
       {.host = name, .port = 443, .address = host_of("10.0.0.5"), .address_is_own = true},
       "a.test leads to 10.0.0.5, which is private; only a rule for the address itself reaches it",
       ""},
      {web,
       {.host = name, .port = 443, .address = host_of("8.8.8.8"), .address_is_own = true},
       "a.test leads to 8.8.8.8, which is one of this host's own addresses; only a rule for the "
       "address itself reaches it",
       ""},
      {{"localhost:443"},
       {.host = host_of("localhost"), .port = 443, .address = host_of("8.8.8.8")},
       "localhost leads to 8.8.8.8, which is not this host's loopback",
       ""},
      {{"a.test:443", "assert:fetch.block_rfc1918"},
       {.host = name, .port = 443, .address = host_of("10.0.0.5")},
       "a.test leads to 10.0.0.5, which is private; assert:fetch.block_rfc1918 excludes it",
       ""},
  };
}

TEST(Refusal, SaysWhyAndWhatWouldAllowIt) {
  for (const Case& refusal : refusals()) {
    const Policy policy = policy_of(refusal.rules);
    const Verdict verdict = decide(policy, refusal.flow);
    SCOPED_TRACE(refusal.explanation);
    EXPECT_FALSE(verdict.is_allowed());
    EXPECT_EQ(explain(verdict, refusal.flow), refusal.explanation);
    EXPECT_EQ(remedy(verdict, refusal.flow), refusal.remedy);
  }
}

TEST(Allowed, NeedsNoRemedyAndTellsOfAHiddenName) {
  const Policy policy = policy_of({"a.test:443"});
  Flow flow{.host = host_of("a.test"), .port = 443, .speech = Speech::tls};
  flow.said = flow.host;
  EXPECT_EQ(explain(decide(policy, flow), flow), "allowed");
  flow.encrypted_hello = true;
  EXPECT_EQ(explain(decide(policy, flow), flow), "allowed; inner name not verified");
  EXPECT_EQ(remedy(decide(policy, flow), flow), "");
}

}  // namespace
}  // namespace capgate::egress
