// The broker's orders from the Plan that was reviewed: nothing is decided here.
#pragma once

#include <string>
#include <vector>

#include "egress/policy.h"
#include "lower/plan.h"
#include "sandbox/lacking.h"

namespace capgate::sandbox {

// What the Plan does not know.
struct EgressRun {
  std::string sandbox;      // names this run in the audit log
  std::string policy_hash;  // core::Policy::hash
};

[[nodiscard]] egress::Policy egress_policy(const lower::Plan& plan, const EgressRun& run);

// Those that the broker could name where it refuses.
[[nodiscard]] std::vector<core::NetConnect> connects_of(const Lacking& lacking);

}  // namespace capgate::sandbox
