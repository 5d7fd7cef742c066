// `capgate diff --if-policy`: does a text look like something that grants?
#pragma once

#include "cli/diff_sources.h"

namespace capgate::cli {

// A manifest, a capgate.yaml, a capgate.lock or what compile printed, by its keys or by its name.
// Whether it has mistakes does not matter: a mistake must not hide what stands beside it.
[[nodiscard]] bool is_policy(const ReadSource& source);

}  // namespace capgate::cli
