#include "egress/decide.h"

#include <algorithm>

#include "egress/policy.h"

namespace capgate::egress {

bool is_name_allowed(const Policy& policy, const core::HostPattern& name) {
  return std::ranges::any_of(policy.rules, [&](const Rule& rule) {
    return core::matches(rule.connect.endpoint.host, name);
  });
}

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::allowed: return "allowed";
    case Reason::no_rule: return "no-rule";
    case Reason::no_name: return "no-name";
    case Reason::other_name: return "other-name";
    case Reason::inner_name_unknown: return "inner-name-unknown";
    case Reason::not_spoken_here: return "not-spoken-here";
    case Reason::other_method: return "other-method";
    case Reason::other_path: return "other-path";
    case Reason::private_address: return "private-address";
    case Reason::own_address: return "own-address";
  }
  return "";
}

}  // namespace capgate::egress
