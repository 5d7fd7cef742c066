// What every Seatbelt profile allows, whatever the policy: what node and python need in order to
// start, by name. No service that opens, prints, pastes, reads keys or preferences.
#pragma once

#include <span>
#include <string_view>

namespace capgate::lower::seatbelt {

struct BaseRules {
  std::string_view reason;
  std::span<const std::string_view> rules;
};
[[nodiscard]] std::span<const BaseRules> base_rules();

}  // namespace capgate::lower::seatbelt
