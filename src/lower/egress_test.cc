#include "lower/egress.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <regex>

#include "base/ranges.h"
#include "core/grammar.h"
#include "support/egress_files.h"
#include "support/endpoint_vectors.h"
#include "support/generators.h"
#include "support/lowering.h"
#include "text/yaml.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

constexpr std::string_view kinds[] = {"spec", "squid", "nftables", "envoy", "mitmproxy"};

Lowered lower(std::string_view kind, const Strings& capabilities, Strings accepted = {}) {
  return {"egress",
          capabilities,
          {.accepted = std::move(accepted), .egress_target = std::string(kind)}};
}

std::string file_of(const Lowered& lowered) {
  EXPECT_TRUE(lowered.ok()) << lowered.verdict();
  return lowered.ok() ? lowered.artifact().files.at(0).contents : "";
}

std::string lowered_file(std::string_view kind, const Strings& capabilities) {
  // Accepted is what it refuses, so that every kind gives a file.
  Strings accepted;
  for (const std::string& capability : capabilities) {
    if (lower(kind, {capability}).ok()) continue;
    accepted.push_back(print(core::parse_capability(capability, {})->front()));
  }
  return file_of(lower(kind, capabilities, accepted));
}

bool has_line(const std::string& text, std::string_view line) {
  return contains(split(text, '\n'), line);
}

// ---- What each kind keeps, refuses and lists ---------------------------------------------------

TEST(Egress, NothingIsAllowedWithoutARule) {
  EXPECT_TRUE(lowered_file("squid", {}).ends_with("\nhttp_access deny all\n"));
  EXPECT_FALSE(lowered_file("squid", {}).contains("http_access allow"));
  EXPECT_TRUE(lowered_file("envoy", {}).contains("policies: {}"));
  EXPECT_TRUE(lowered_file("mitmproxy", {}).contains("RULES = []\n"));
  EXPECT_TRUE(lowered_file("spec", {}).contains("rules: []\n"));
}

TEST(Egress, RefusesWhatAKindCannotKeep) {
  const std::string refused = "ADAPTER_UNSUPPORTED";
  struct Row {
    std::string capability;
    std::string spec, squid, nftables, envoy, mitmproxy;
  };
  const Row rows[] = {
      {"net:connect:a.test:443", "ok", "ok", refused, refused, "ok"},
      {"net:connect:*.a.test:443", "ok", "ok", refused, refused, "ok"},
      {"net:connect:*:443", "ok", "ok", "ok", refused, "ok"},
      {"net:connect:8.8.8.8:443", "ok", "ok", "ok", "ok", "ok"},
      {"net:connect:10.0.0.5", "ok", "ok", "ok", "ok", "ok"},
      {"net:connect:[2606:4700::1]:443", "ok", "ok", "ok", "ok", "ok"},
      {"net:connect:127.0.0.1:80", "ok", "ok", refused, "ok", "ok"},
      {"net:connect:localhost:80", "ok", "ok", refused, refused, "ok"},
      {"net:connect:8.8.8.8:443?sni=strict", "ok", refused, refused, refused, "ok"},
      {"net:connect:8.8.8.8:443?sni=any", "ok", "ok", "ok", "ok", "ok"},
      {"net:connect:8.8.8.8:443?proto=tls", "ok", refused, refused, refused, "ok"},
      {"net:connect:8.8.8.8:443?proto=tcp", "ok", "ok", "ok", "ok", "ok"},
      {"net:connect:8.8.8.8:80?proto=http", "ok", "ok", refused, "ok", "ok"},
      {"net:connect:8.8.8.8:80?proto=http&methods=GET", "ok", "ok", refused, "ok", "ok"},
      {"net:connect:8.8.8.8:80?proto=http&methods=-I", "ok", refused, refused, "ok", "ok"},
      {"net:connect:8.8.8.8:80?proto=http&paths=/v1/**", "ok", refused, refused, refused, "ok"},
      {"net:connect:8.8.8.8:443?methods=GET", refused, refused, refused, refused, "ok"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(lower("spec", {row.capability}).verdict(), row.spec) << row.capability;
    EXPECT_EQ(lower("squid", {row.capability}).verdict(), row.squid) << row.capability;
    EXPECT_EQ(lower("nftables", {row.capability}).verdict(), row.nftables) << row.capability;
    EXPECT_EQ(lower("envoy", {row.capability}).verdict(), row.envoy) << row.capability;
    EXPECT_EQ(lower("mitmproxy", {row.capability}).verdict(), row.mitmproxy) << row.capability;
  }
}

TEST(Egress, D24EveryOtherKindIsListed) {
  const Strings others = {"fs:read:/x", "exec:spawn:git", "env:read:LANG", "clock:tzdata",
                          "limit:pids:32"};
  Strings all = others;
  all.emplace_back("assert:a:\"b\"");
  const auto manifest = support::read_manifest(support::manifest_json({all}));
  ASSERT_TRUE(manifest);
  const auto policy = core::merge(*manifest);
  for (const std::string_view kind : kinds) {
    const Options options{.egress_target = std::string(kind)};
    const Input input{*manifest, *policy, options};
    const auto artifact = lower_to(*find_target("egress"), input);
    ASSERT_TRUE(artifact);
    EXPECT_EQ(artifact->not_covered.size(), others.size()) << kind;
    EXPECT_TRUE(
        print_json(*artifact, input, text::JsonWriter::Style::compact).contains(R"("id":"a")"));
  }
}

TEST(Egress, ListenersAreKeptOrListed) {
  for (const std::string_view kind : kinds) {
    const Lowered lowered = lower(kind, {"net:listen:8081"});
    const bool kept = kind == "spec" || kind == "nftables";
    EXPECT_EQ(lowered.artifact().not_covered, kept ? Strings{} : Strings{"net:listen:8081"});
    EXPECT_EQ(file_of(lowered).contains("8081"), kept) << kind;
  }
}

TEST(Egress, D20ThePrivateDecisionIsPerRule) {
  const Strings both = {"net:connect:*:443", "net:connect:10.0.0.5:443",
                        "net:connect:169.254.169.254:80"};
  const std::string nft = lowered_file("nftables", both);
  EXPECT_TRUE(has_line(nft, "    tcp dport 443 ip daddr != @private4 accept"));
  EXPECT_TRUE(has_line(nft, "    tcp dport 443 ip daddr 10.0.0.5 accept"));
  EXPECT_TRUE(has_line(nft, "    tcp dport 80 ip daddr 169.254.169.254 accept"));
  EXPECT_FALSE(nft.contains("@private4 drop"));
  const std::string squid = lowered_file("squid", both);
  EXPECT_TRUE(has_line(squid, "http_access allow cg_port_1 !cg_local_name !cg_private"));
  EXPECT_TRUE(has_line(squid, "http_access allow cg_port_2 cg_literal cg_host_2"));
}

TEST(Egress, D21NftablesIsAScriptThatNamesItsNamespace) {
  const Lowered lowered = lower("nftables", {});
  EXPECT_TRUE(lowered.artifact().files.at(0).executable);
  const std::string text = file_of(lowered);
  EXPECT_TRUE(text.starts_with("#!/bin/sh\n"));
  EXPECT_LT(text.find("that is the namespace of this shell"), text.find("<<'RULES'"));
  EXPECT_LT(text.find("netdev_max_backlog"), text.find("exec nft"));
  for (const std::string_view line :
       {"    ct state established,related accept", "    oifname \"lo\" accept",
        "    type filter hook output priority filter; policy drop;",
        "    type filter hook input priority filter; policy drop;"}) {
    EXPECT_TRUE(has_line(text, line)) << line;
  }
}

TEST(Egress, D23WhatLooksPrivateInANameDecidesNothing) {
  const std::string squid = lowered_file("squid", {"net:connect:127.evil.test:80"});
  EXPECT_TRUE(squid.contains("!cg_literal cg_host_1 !cg_private"));
  EXPECT_TRUE(
      lowered_file("spec", {"net:connect:127.evil.test:80"}).contains("blockPrivate: true"));
}

// ---- D19: nothing that a manifest says becomes syntax ------------------------------------------

TEST(Egress, D19TheServersNameStaysAText) {
  for (const std::string name :
       {"x\\\"\\\"\\\" + __import__('os') + \\\"\\\"\\\"", "a: b", "- x", "# c", "{}", "'", "$(id)",
        "RULES", "\xc3\xa9", "*", "%", "\\\\"}) {
    auto manifest =
        support::read_manifest(format(R"({{"name":"{}","version":"1","tools":[]}})", name), {});
    ASSERT_TRUE(manifest) << name;
    const auto policy = core::merge(*manifest);
    for (const std::string_view kind : kinds) {
      const Options options{.egress_target = std::string(kind)};
      const auto artifact = lower_to_egress({*manifest, *policy, options});
      ASSERT_TRUE(artifact);
      const std::string& text = artifact->files.at(0).contents;
      if (kind != "spec") {
        EXPECT_EQ(text, lowered_file(kind, {})) << kind;
        continue;
      }
      const auto document = text::parse_yaml(text);
      ASSERT_TRUE(document) << text;
      EXPECT_EQ(document->root().find("server")->text(), manifest->name);
    }
  }
}

// ---- D22: one definition of what a rule covers -------------------------------------------------

core::HostPattern host(std::string_view text) { return *core::parse_host(text); }

// Where a host of the vectors leads, if nobody plays tricks.
std::vector<core::HostPattern> addresses_of(const core::HostPattern& destination) {
  using Kind = core::HostPattern::Kind;
  if (destination.kind == Kind::ipv4 || destination.kind == Kind::ipv6) return {destination};
  return {host(core::names_private_endpoint(destination) ? "127.0.0.1" : "8.8.8.8")};
}

struct Case {
  std::string capability;
  core::Endpoint destination;
  bool covered;
  std::string line;
};

std::vector<Case> cases() {
  using Verdict = support::EndpointVector::Verdict;
  std::vector<Case> out;
  for (const support::EndpointVector& vector : support::endpoint_vectors()) {
    if (vector.verdict != Verdict::yes && vector.verdict != Verdict::no) continue;
    const auto destination = core::parse_endpoint(vector.destination);
    if (!destination->port || vector.destination.starts_with('*')) continue;
    out.push_back(
        {"net:connect:" + vector.rule, *destination, vector.verdict == Verdict::yes, vector.line});
  }
  EXPECT_GT(out.size(), 80U);
  return out;
}

TEST(Egress, D22SquidCoversWhatTheVectorsSay) {
  for (const Case& each : cases()) {
    const support::SquidFile squid(lowered_file("squid", {each.capability}));
    for (const std::string method : {"CONNECT", "GET"}) {
      EXPECT_EQ(squid.allows({.host = each.destination.host,
                              .port = *each.destination.port,
                              .addresses = addresses_of(each.destination.host),
                              .method = method}),
                each.covered)
          << each.line;
    }
  }
}

TEST(Egress, D22NftablesCoversWhatTheVectorsSayOfAddresses) {
  using Kind = core::HostPattern::Kind;
  for (const Case& each : cases()) {
    const Kind kind = each.destination.host.kind;
    if (kind != Kind::ipv4 && kind != Kind::ipv6) continue;
    const Lowered lowered = lower("nftables", {each.capability});
    if (!lowered.ok()) continue;
    const support::NftFile nft(file_of(lowered));
    EXPECT_EQ(nft.allows(each.destination.host, *each.destination.port), each.covered) << each.line;
  }
}

TEST(Egress, D22EnvoyCoversWhatTheVectorsSay) {
  for (const Case& each : cases()) {
    const support::EnvoyFile envoy(lowered_file("envoy", {each.capability}));
    // Which addresses are private is for the second filter to say.
    if (!each.covered && core::is_private_address(each.destination.host)) continue;
    EXPECT_EQ(envoy.allows(print(each.destination)), each.covered) << each.line;
  }
}

TEST(Egress, D23SquidChecksEveryAddress) {
  const support::SquidFile squid(lowered_file(
      "squid",
      {"net:connect:a.test:80", "net:connect:p.test:80?private=true", "net:connect:localhost:80"}));
  const auto leads = [&](std::string_view name, const Strings& places) {
    support::EgressFlow flow{.host = host(name), .port = 80};
    for (const std::string& place : places) flow.addresses.push_back(host(place));
    return squid.allows(flow);
  };
  EXPECT_TRUE(leads("a.test", {"8.8.8.8", "2606:4700::1"}));
  EXPECT_FALSE(leads("a.test", {"8.8.8.8", "10.0.0.5"}));
  EXPECT_FALSE(leads("a.test", {"0.0.0.0"}));
  EXPECT_FALSE(leads("a.test", {"64:ff9b::a00:5"}));
  EXPECT_FALSE(leads("a.test", {"255.255.255.255"}));  // what squid takes for "no answer"
  EXPECT_TRUE(leads("p.test", {"10.0.0.5"}));
  EXPECT_TRUE(leads("p.test", {"fd00::1", "8.8.8.8"}));
  EXPECT_FALSE(leads("p.test", {"10.0.0.5", "169.254.169.254"}));
  EXPECT_FALSE(leads("p.test", {"fd00:ec2::254"}));
  EXPECT_FALSE(leads("p.test", {"127.0.0.1"}));
  EXPECT_TRUE(leads("localhost", {"127.0.0.1"}));
  EXPECT_FALSE(leads("localhost", {"10.0.0.5"}));
}

RC_GTEST_PROP(Egress, SquidAndNftablesAreNeverWiderThanTheRules, ()) {
  const auto endpoints = *rc::gen::container<std::vector<core::Endpoint>>(support::endpoint());
  Strings capabilities;
  capabilities.reserve(endpoints.size());
  for (const core::Endpoint& endpoint : endpoints) {
    capabilities.push_back("net:connect:" + print(endpoint));
  }
  const core::Endpoint to = *support::endpoint();
  using Kind = core::HostPattern::Kind;
  RC_PRE(to.host.kind != Kind::any && to.host.kind != Kind::subdomains && to.port);
  const bool covered =
      std::ranges::any_of(endpoints, [&](const auto& rule) { return core::matches(rule, to); });
  const Lowered squid = lower("squid", capabilities);
  RC_ASSERT(squid.ok());
  RC_ASSERT(support::SquidFile(file_of(squid))
                .allows({.host = to.host, .port = *to.port, .addresses = addresses_of(to.host)}) ==
            covered);
  const Lowered nft = lower("nftables", capabilities);
  if (nft.ok() && (to.host.kind == Kind::ipv4 || to.host.kind == Kind::ipv6)) {
    RC_ASSERT(support::NftFile(file_of(nft)).allows(to.host, *to.port) == covered);
  }
}

}  // namespace
}  // namespace capgate::lower
