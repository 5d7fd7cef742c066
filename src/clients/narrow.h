// Does one policy grant anything that another one does not? What a project's capgate.yaml may say
// without a person's approval is decided here, with the language's own merge: adding it to what is
// granted already must change nothing.
//
//   grants_beyond(users, projects)   -> {"net:connect:evil.example:443"}
#pragma once

#include <string>
#include <vector>

#include "core/manifest.h"

namespace capgate::clients {

// The grants of `wanted` that `base` does not cover, as capability strings; empty: it narrows.
// `wanted` can be merged by itself.
[[nodiscard]] std::vector<std::string> grants_beyond(const core::Manifest& base,
                                                     const core::Manifest& wanted);

// Limits and assertions hold a server back, so leaving one out would widen: what `base` states and
// `wanted` does not is added to it.
void keep_bounds(const core::Manifest& base, core::Manifest& wanted);

}  // namespace capgate::clients
