#include "core/built_in.h"

#include <algorithm>

namespace capgate::core {

std::string_view built_in_validator(std::string_view id) {
  if (id != block_private_id) return {};
  return "built in: capgate reaches no private address, not even one that a rule names";
}

bool is_public_only(const Policy& policy) {
  return std::ranges::any_of(
      policy.assertions, [](const auto& grant) { return grant.capability.id == block_private_id; });
}

}  // namespace capgate::core
