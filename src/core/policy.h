// What a server may do, all tools together: exactly the union of what they declare, in one normal
// form, each grant knowing which declarations caused it.
//
//   const Policy policy = TRY(merge(manifest));
//   policy_lines(policy)  -> {"env:inject:TOKEN", "fs:write:/workspace/**", ...}
//   policy.hash           -> "sha256:...", which changes exactly when those lines change
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/capability.h"

namespace capgate::core {

// Indices into Manifest::declared, ascending.
using Origins = std::vector<std::uint32_t>;

template <typename T>
struct Granted {
  T capability;
  Origins origins;
};

// Each list is sorted and free of entries that another one covers. Of the fs actions a grant holds
// exactly one: read, create, delete or write (core/rights.h).
struct Policy {
  std::vector<Granted<FsCapability>> files;
  std::vector<Granted<NetConnect>> connect;
  std::vector<Granted<NetListen>> listen;
  std::vector<Granted<ExecCapability>> programs;
  std::vector<Granted<EnvCapability>> variables;
  std::vector<Granted<IpcCapability>> sockets;
  std::vector<Granted<ClockCapability>> clocks;
  std::vector<Granted<LimitCapability>> limits;
  std::vector<Granted<AssertCapability>> assertions;
  std::string hash;  // policy_hash of the lists: several places print it, one computes it
};

// Calls `use(Capability, origins)` for each grant, in the order of the members above.
template <typename Use>
void for_each_grant(const Policy& policy, Use use) {
  const auto each = [&](const auto& grants) {
    for (const auto& grant : grants) use(Capability(grant.capability), grant.origins);
  };
  each(policy.files);
  each(policy.connect);
  each(policy.listen);
  each(policy.programs);
  each(policy.variables);
  each(policy.sockets);
  each(policy.clocks);
  each(policy.limits);
  each(policy.assertions);
}

// The policy as canonical capability strings, in the order of the members above.
[[nodiscard]] std::vector<std::string> policy_lines(const Policy& policy);
[[nodiscard]] std::string policy_hash(const Policy& policy);

}  // namespace capgate::core
