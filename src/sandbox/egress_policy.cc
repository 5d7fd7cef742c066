#include "sandbox/egress_policy.h"

#include <variant>

#include "core/grammar.h"

namespace capgate::sandbox {

egress::Policy egress_policy(const lower::Plan& plan, const EgressRun& run) {
  egress::Policy out{.server = plan.server,
                     .sandbox = run.sandbox,
                     .hash = run.policy_hash,
                     .public_only = plan.network.public_only};
  for (const lower::PlanRule& rule : plan.network.rules) {
    out.rules.push_back({.connect = rule.connect,
                         .text = print(core::Capability(rule.connect)),
                         .position = rule.position});
  }
  return out;
}

std::vector<core::NetConnect> connects_of(const Lacking& lacking) {
  std::vector<core::NetConnect> out;
  out.reserve(lacking.capabilities.size());
  for (const std::string& text : of_kind(lacking, "net:connect:")) {
    const auto parsed = core::parse_capability(text, {});
    if (!parsed || parsed->size() != 1) continue;
    if (const auto* connect = std::get_if<core::NetConnect>(&parsed->front())) {
      out.push_back(*connect);
    }
  }
  return out;
}

}  // namespace capgate::sandbox
