// What a target that carries declared egress over `capgate egress` hands to it: the neutral form of
// the rules, which is also what `--target egress` prints.
#pragma once

#include <string>

#include "lower/common.h"

namespace capgate::lower {

// capgateEgress: 1, with every rule; nothing is lost.
[[nodiscard]] std::string egress_policy_yaml(const Input& input);

// Refuses methods and paths where the broker alone cannot see them: inside TLS.
void refuse_unseen_requests(const Input& input, Support& support);

// Refuses net:listen for a target whose sandbox nobody can connect to.
void refuse_listeners(const Input& input, Support& support);

}  // namespace capgate::lower
