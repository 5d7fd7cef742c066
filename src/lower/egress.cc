#include "lower/egress.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "core/built_in.h"
#include "lower/egress_emit.h"

namespace capgate::lower {
namespace {

using core::HostPattern;

struct Emitter {
  std::string_view name;
  void (*emit)(EgressJob& job);
};

constexpr Emitter emitters[] = {
    {"spec", emit_spec},   {"squid", emit_squid},         {"nftables", emit_nftables},
    {"envoy", emit_envoy}, {"mitmproxy", emit_mitmproxy},
};

}  // namespace

Reach reach_of(const core::NetConnect& rule, bool public_only) {
  const HostPattern& host = rule.endpoint.host;
  const bool is_private = core::names_private_endpoint(host);
  if (is_private && public_only) return Reach::nothing;
  switch (host.kind) {
    case HostPattern::Kind::any: return Reach::public_only;
    case HostPattern::Kind::subdomains:
      // Names below localhost are covered by rules that name them, never by a wildcard.
      if (host.text == "localhost" || host.text.ends_with(".localhost")) return Reach::nothing;
      break;
    case HostPattern::Kind::name:
      if (is_private) return Reach::loopback;
      break;
    case HostPattern::Kind::ipv4:
    case HostPattern::Kind::ipv6: return Reach::address;
  }
  const bool open = rule.refinements.private_network && !public_only;
  return open ? Reach::private_network : Reach::public_only;
}

std::vector<const ConnectGrant*> effective_rules(EgressJob& job) {
  std::vector<const ConnectGrant*> out;
  out.reserve(job.input.policy.connect.size());
  for (const ConnectGrant& grant : job.input.policy.connect) {
    if (reach_of(grant.capability, job.public_only) != Reach::nothing) {
      out.push_back(&grant);
      continue;
    }
    job.artifact.notes.push_back(
        format("net: {} leads nowhere: {}", print(grant.capability),
               job.public_only && core::names_private_endpoint(grant.capability.endpoint.host)
                   ? "assert:fetch.block_rfc1918 closes private addresses"
                   : "a wildcard does not cover names of the loopback"));
  }
  if (out.empty()) job.artifact.notes.emplace_back("net: nothing is allowed");
  return out;
}

void list_listeners(EgressJob& job) {
  for (const auto& grant : job.input.policy.listen) {
    job.artifact.not_covered.push_back(print(grant.capability));
  }
}

std::string join_blocks(const std::vector<core::AddressBlock>& blocks, std::string_view separator) {
  std::string out;
  for (const core::AddressBlock& block : blocks) {
    if (!out.empty()) out += separator;
    out += print(block);
  }
  return out;
}

Checked<Artifact> lower_to_egress(const Input& input) {
  const auto* emitter =
      std::ranges::find(emitters, std::string_view(input.options.egress_target), &Emitter::name);
  CAPGATE_ASSERT(emitter != std::end(emitters));  // the command line knows no others
  Artifact artifact;
  artifact.target = "egress";
  artifact.notes = policy_notes(input);
  Support support(emitter->name, input);
  EgressJob job{.input = input,
                .support = support,
                .artifact = artifact,
                .public_only = core::is_public_only(input.policy)};
  emitter->emit(job);
  artifact.unenforced = TRY(std::move(support).finish());
  return artifact;
}

}  // namespace capgate::lower
