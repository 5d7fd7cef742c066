// tests/vectors/flows.tsv, read; and policies of the broker from short rules.
//
//   const egress::Policy policy = policy_of({"a.test:443?sni=any", "assert:fetch.block_rfc1918"});
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "core/grammar.h"
#include "egress/policy.h"
#include "support/endpoint_vectors.h"
#include "support/files.h"

namespace capgate::support {

[[nodiscard]] inline core::HostPattern host_of(std::string_view text) {
  const auto host = core::parse_host(text);
  EXPECT_TRUE(host) << text;
  return host ? *host : core::HostPattern{};
}

// A rule is what follows net:connect: in a capability.
[[nodiscard]] inline egress::Policy policy_of(const std::vector<std::string>& rules) {
  egress::Policy policy{.server = "s", .sandbox = "1", .hash = "sha256:0"};
  for (const std::string& rule : rules) {
    if (rule == "assert:fetch.block_rfc1918") {
      policy.public_only = true;
      continue;
    }
    const auto parsed = core::parse_capability("net:connect:" + rule, {});
    if (!parsed) {
      ADD_FAILURE() << rule << ": " << parsed.error().message;
      continue;
    }
    policy.rules.push_back({.connect = std::get<core::NetConnect>(parsed->front()),
                            .text = print(parsed->front()),
                            .position = format("m.json:{}:1", policy.rules.size() + 1)});
  }
  return policy;
}

struct FlowVector {
  egress::Policy policy;
  egress::Flow flow;
  std::string expected;  // the last two columns: reason TAB rule
  std::string line;      // as written, for messages
};

namespace detail {

inline void read_speech(std::string_view text, egress::Flow& flow) {
  using enum egress::Speech;
  const auto words = split(text, ' ');
  flow.terminated = words[0] == "sealed";
  flow.speech = words[0] == "tls" || flow.terminated ? tls : words[0] == "http" ? http : unknown;
  if (words[0] == "other") flow.speech = other;
  EXPECT_EQ(flow.speech == unknown, text == "-") << text;
  if (flow.speech != http && words.size() < 3) return;
  flow.method = words.size() >= 3 ? std::string(words[1]) : "GET";
  flow.path = words.size() >= 3 ? undo_escapes(words[2]) : "/";
  if (words.size() == 4) flow.override_field = words[3];
}

inline void read_said(std::string_view text, egress::Flow& flow) {
  flow.said_is_invalid = text == "!";
  if (text == "-" || text == "!") return;
  const auto said = core::parse_endpoint(text);
  ASSERT_TRUE(said) << text;
  flow.said = said->host;
  flow.said_port = said->port;
}

}  // namespace detail

[[nodiscard]] inline std::vector<FlowVector> flow_vectors() {
  std::vector<FlowVector> out;
  for (const std::string& line : read_lines("tests/vectors/flows.tsv")) {
    const auto columns = split(line, '\t');
    if (columns.size() != 10) {
      ADD_FAILURE() << "not ten columns: " << line;
      continue;
    }
    std::vector<std::string> rules;
    for (const std::string_view rule : split(columns[0], '|')) {
      if (!rule.empty()) rules.emplace_back(rule);
    }
    FlowVector vector{.policy = policy_of(rules), .line = line};
    vector.flow.host = host_of(columns[1]);
    vector.flow.port = core::parse_port(columns[2]).value_or(0);
    detail::read_speech(columns[3], vector.flow);
    detail::read_said(columns[4], vector.flow);
    vector.flow.encrypted_hello = columns[5] == "yes";
    if (columns[6] != "-") vector.flow.address = host_of(columns[6]);
    vector.flow.address_is_own = columns[7] == "yes";
    vector.expected = format("{}\t{}", columns[8], columns[9]);
    out.push_back(std::move(vector));
  }
  return out;
}

}  // namespace capgate::support
