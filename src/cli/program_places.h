// The files that a command stands for, as places that no server may write: the name in PATH, the
// program, every script and interpreter on the way.
#pragma once

#include <string>
#include <vector>

#include "sandbox/policy_place.h"
#include "sandbox/program.h"

namespace capgate::cli {

// `role` is said of each in a refusal: "runs outside, for the secret X".
[[nodiscard]] std::vector<sandbox::PolicyPlace> program_places(
    const std::vector<std::string>& command, const sandbox::Caller& caller,
    const std::string& role);

}  // namespace capgate::cli
