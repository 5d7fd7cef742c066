#include "seal/keyrings.h"

#include <algorithm>

namespace capgate::seal {

bool goes_to(const egress::Seal& seal, const core::HostPattern& host, std::uint16_t port) {
  return std::ranges::any_of(seal.env.to, [&](const core::Endpoint& endpoint) {
    return core::matches(endpoint, {.host = host, .port = port});
  });
}

std::vector<const secrets::Secret*> Keyrings::current() const {
  std::vector<const secrets::Secret*> out;
  out.reserve(policy_.seals.size());
  for (const egress::Seal& seal : policy_.seals) out.push_back(values_.find(seal.env.name));
  return out;
}

Keyring Keyrings::at(const core::HostPattern& host, std::uint16_t port) {
  std::vector<const secrets::Secret*> values = current();
  const std::pair place(host.text, port);
  if (const auto found = made_.find(place);
      found != made_.end() && found->second.values == values) {
    return found->second.keyring;
  }
  std::vector<Key> keys;
  keys.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const egress::Seal& seal = policy_.seals[i];
    keys.push_back({.name = seal.env.name,
                    .placeholder = seal.placeholder,
                    .as = seal.env.as,
                    .is_bound_here = goes_to(seal, host, port),
                    .value = values[i],
                    .former = values_.sent(seal.env.name)});
  }
  Keyring keyring(std::move(keys));
  made_.insert_or_assign(place, Made{.values = std::move(values), .keyring = keyring});
  return keyring;
}

}  // namespace capgate::seal
