// A sealed secret is never inside the sandbox, so a file that holds its value must not be visible
// there either: the server would read it, and nothing would tell it from any other file.
//
//   TRY(check_sealed_files({{.path = "/srv/w/token", .role = "holds ..."}}, bound, launcher));
//
// Compared by identity with everything that the bound plan mounts, whatever name leads there. A
// file with several names (hard links) may have one in a granted directory, which nobody can know
// without reading all of it: then the launch is refused as well.
#pragma once

#include <expected>
#include <vector>

#include "sandbox/bind.h"
#include "sandbox/policy_place.h"

namespace capgate::sandbox {

[[nodiscard]] std::expected<void, Refusal> check_sealed_files(const std::vector<PolicyPlace>& files,
                                                              const Bound& bound,
                                                              const Launcher& launcher);

}  // namespace capgate::sandbox
