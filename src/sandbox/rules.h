// The Landlock rules of a bound plan: what the mounts promise, said again at another place of the
// kernel.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "lower/plan.h"
#include "sandbox/bind.h"
#include "sandbox/grants.h"

namespace capgate::sandbox {

// Adds them to `bound`, from the Plan's rules, the programs and the sockets that are mounted.
[[nodiscard]] std::expected<void, Refusal> add_rules(const lower::Plan& plan, const Holes& holes,
                                                     Grants& grants,
                                                     const std::vector<const Program*>& programs,
                                                     const std::vector<std::string>& sockets,
                                                     int abi, Bound& bound);

}  // namespace capgate::sandbox
