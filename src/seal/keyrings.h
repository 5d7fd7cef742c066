// The keys of each sealed endpoint, one Keyring for all of its connections.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "egress/policy.h"
#include "seal/swap.h"
#include "seal/values.h"

namespace capgate::seal {

class Keyrings {
 public:
  Keyrings(const egress::Policy& policy, const Values& values) : policy_(policy), values_(values) {}

  // As of now: a value that has expired is none.
  [[nodiscard]] Keyring at(const core::HostPattern& host, std::uint16_t port);

 private:
  struct Made {
    std::vector<const secrets::Secret*> values;  // in the order of the seals; null: expired
    Keyring keyring;
  };
  [[nodiscard]] std::vector<const secrets::Secret*> current() const;

  const egress::Policy& policy_;
  const Values& values_;
  std::map<std::pair<std::string, std::uint16_t>, Made> made_;
};

[[nodiscard]] bool goes_to(const egress::Seal& seal, const core::HostPattern& host,
                           std::uint16_t port);

}  // namespace capgate::seal
