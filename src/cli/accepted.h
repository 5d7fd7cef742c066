// --accept-unenforced: capabilities that the caller accepts although they cannot be enforced.
#pragma once

#include <expected>

#include "cli/options.h"
#include "lower/artifact.h"

namespace capgate::cli {

// On failure everything is said in `output`, and the exit code is the error.
[[nodiscard]] std::expected<void, int> read_accepted(const Arguments& arguments,
                                                     lower::Options& out, Output& output);

}  // namespace capgate::cli
