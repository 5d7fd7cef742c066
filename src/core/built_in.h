// Assertions that capgate itself keeps. All others are promises that somebody else verifies
// (core/validators.h).
//
//   assert:fetch.block_rfc1918   no private address is reached, not even one that a rule names
#pragma once

#include <string_view>

#include "core/policy.h"

namespace capgate::core {

inline constexpr std::string_view block_private_id = "fetch.block_rfc1918";

// How capgate keeps the assertion; empty if it does not know it.
[[nodiscard]] std::string_view built_in_validator(std::string_view id);

// True if the policy holds assert:fetch.block_rfc1918.
[[nodiscard]] bool is_public_only(const Policy& policy);

}  // namespace capgate::core
