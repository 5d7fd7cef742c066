// The options of `compile` that say how a policy is lowered, shared with whoever lowers.
#pragma once

#include <expected>

#include "cli/options.h"
#include "lower/artifact.h"
#include "lower/targets.h"

namespace capgate::cli {

// On failure everything is said in `output`, and the exit code is the error. What follows the
// manifest is the server's command.
[[nodiscard]] std::expected<void, int> read_lower_options(const Arguments& arguments,
                                                          const lower::Target& target,
                                                          lower::Options& out, Output& output);

}  // namespace capgate::cli
