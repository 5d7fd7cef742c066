#include "sandbox/egress_policy.h"

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

}  // namespace capgate::sandbox
