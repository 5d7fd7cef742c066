#include "egress/decide.h"

#include <algorithm>
#include <tuple>

#include "base/assert.h"
#include "egress/policy.h"
#include "egress/url_path.h"

namespace capgate::egress {
namespace {

using core::HostPattern;
using core::NetRefinements;
using Proto = NetRefinements::Proto;
using Sni = NetRefinements::Sni;

bool is_address(const HostPattern& host) {
  return host.kind == HostPattern::Kind::ipv4 || host.kind == HostPattern::Kind::ipv6;
}

bool is_web_port(std::uint16_t port) { return port == 80 || port == 443; }

bool has_request_rules(const NetRefinements& refine) {
  return !refine.methods.empty() || !refine.paths.empty();
}

bool is_speech_asked(const Rule& rule, std::uint16_t port) {
  switch (rule.connect.refinements.proto) {
    // What is neither TLS nor HTTP has no request that could be judged.
    case Proto::detect: return is_web_port(port) || has_request_rules(rule.connect.refinements);
    case Proto::tcp: return false;
    case Proto::tls:
    case Proto::http: return true;
  }
  return true;
}

bool is_spoken_here(const Rule& rule, const Flow& flow) {
  switch (flow.speech) {
    case Speech::unknown: return true;
    case Speech::tls: return rule.connect.refinements.proto != Proto::http;
    case Speech::http: return rule.connect.refinements.proto != Proto::tls;
    case Speech::other: return !is_speech_asked(rule, flow.port);
  }
  return false;
}

// One inside TLS that is terminated: a secret may stand in it.
bool is_sealed_request(const Flow& flow) { return flow.terminated && !flow.method.empty(); }

Reason judge_name(const Rule& rule, const Flow& flow) {
  // What says that names need not agree speaks of TLS, not of where a secret goes.
  if (!is_sealed_request(flow)) {
    if (rule.connect.refinements.sni == Sni::any) return Reason::allowed;
    if (flow.speech == Speech::tls && is_address(flow.host)) return Reason::allowed;
  }
  if (flow.said_is_invalid) return Reason::other_name;
  if (!flow.said) return Reason::no_name;
  if (*flow.said != flow.host) return Reason::other_name;
  return flow.said_port.value_or(flow.port) == flow.port ? Reason::allowed : Reason::other_name;
}

Reason judge_request(const NetRefinements& refine, const Flow& flow) {
  if (!refine.methods.empty() &&
      std::ranges::find(refine.methods, flow.method) == refine.methods.end()) {
    return Reason::other_method;
  }
  const auto covers = [&](const std::string& pattern) { return path_matches(pattern, flow.path); };
  if (!refine.paths.empty() && std::ranges::none_of(refine.paths, covers)) {
    return Reason::other_path;
  }
  if (has_request_rules(refine) && !flow.override_field.empty()) return Reason::override_field;
  return Reason::allowed;
}

Reason judge_speech(const Rule& rule, const Flow& flow) {
  if (!is_spoken_here(rule, flow)) return Reason::not_spoken_here;
  if (flow.speech != Speech::tls && flow.speech != Speech::http) return Reason::allowed;
  if (const Reason reason = judge_name(rule, flow); reason != Reason::allowed) return reason;
  const NetRefinements& refine = rule.connect.refinements;
  if (flow.speech == Speech::http) return judge_request(refine, flow);
  if (flow.encrypted_hello && refine.sni == Sni::strict) return Reason::inner_name_unknown;
  return is_sealed_request(flow) ? judge_request(refine, flow) : Reason::allowed;
}

Reason judge_address(const Policy& policy, const Rule& rule, const Flow& flow) {
  if (!flow.address) return Reason::allowed;
  const HostPattern& address = *flow.address;
  const bool is_private = core::is_private_address(address);
  const Reason refusal = is_private ? Reason::private_address : Reason::own_address;
  const bool is_local = is_private || flow.address_is_own;
  if (is_local && policy.public_only) return refusal;
  if (is_address(flow.host)) {
    if (address != flow.host) return Reason::no_rule;
    return is_local && rule.connect.endpoint.host != address ? refusal : Reason::allowed;
  }
  if (core::names_private_endpoint(flow.host)) {
    return core::is_localhost_address(address) ? Reason::allowed : Reason::private_address;
  }
  if (!is_local) return Reason::allowed;
  const bool is_open = rule.connect.refinements.private_network && !flow.address_is_own &&
                       core::is_private_network_address(address);
  return is_open ? Reason::allowed : refusal;
}

Reason judge(const Policy& policy, const Rule& rule, const Flow& flow) {
  if (const Reason reason = judge_speech(rule, flow); reason != Reason::allowed) return reason;
  return judge_address(policy, rule, flow);
}

// Of a rule that covers the flow: the greater, the closer it names it.
auto specificity(const Rule& rule) {
  const HostPattern& host = rule.connect.endpoint.host;
  const NetRefinements& refine = rule.connect.refinements;
  const bool is_wild =
      host.kind == HostPattern::Kind::any || host.kind == HostPattern::Kind::subdomains;
  const std::size_t suffix = host.kind == HostPattern::Kind::subdomains ? host.text.size() : 0;
  const int refinements = int{refine.sni != Sni::match} + int{refine.proto != Proto::detect} +
                          int{!refine.methods.empty()} + int{!refine.paths.empty()} +
                          int{refine.private_network};
  return std::tuple(!is_wild, suffix, rule.connect.endpoint.port.has_value(), refinements);
}

// Whether `verdict` says more than `best`, which came earlier.
bool is_better(const Verdict& verdict, const Verdict& best) {
  if (best.rule == nullptr) return true;
  if (verdict.is_allowed() != best.is_allowed()) return verdict.is_allowed();
  return specificity(*verdict.rule) > specificity(*best.rule);
}

}  // namespace

Verdict decide(const Policy& policy, const Flow& flow) {
  CAPGATE_ASSERT(flow.host.kind != HostPattern::Kind::any &&
                 flow.host.kind != HostPattern::Kind::subdomains);
  Verdict best;
  bool asks_speech = true;
  for (const Rule& rule : policy.rules) {
    if (!core::matches(rule.connect.endpoint, {.host = flow.host, .port = flow.port})) continue;
    const Verdict verdict{.reason = judge(policy, rule, flow), .rule = &rule};
    if (verdict.is_allowed()) asks_speech &= is_speech_asked(rule, flow.port);
    if (is_better(verdict, best)) best = verdict;
  }
  best.public_only = policy.public_only;
  best.client_speaks_first = best.is_allowed() && (asks_speech || flow.terminated);
  best.inner_name_unverified =
      best.is_allowed() && flow.speech == Speech::tls && flow.encrypted_hello;
  return best;
}

bool is_name_allowed(const Policy& policy, const HostPattern& name) {
  return name.kind == HostPattern::Kind::name &&
         std::ranges::any_of(policy.rules, [&](const Rule& rule) {
           return core::matches(rule.connect.endpoint.host, name);
         });
}

bool must_speak_first(const Verdict& verdict) { return verdict.client_speaks_first; }

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::allowed: return "allowed";
    case Reason::no_rule: return "no-rule";
    case Reason::no_name: return "no-name";
    case Reason::other_name: return "other-name";
    case Reason::inner_name_unknown: return "inner-name-unknown";
    case Reason::not_spoken_here: return "not-spoken-here";
    case Reason::other_method: return "other-method";
    case Reason::other_path: return "other-path";
    case Reason::override_field: return "override-field";
    case Reason::private_address: return "private-address";
    case Reason::own_address: return "own-address";
  }
  return "";
}

}  // namespace capgate::egress
