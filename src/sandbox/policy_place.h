// A policy is never taken from a place that the server it is for can write: what it wrote there
// would hold for it the next time.
//
//   TRY(check_policy_places({"/srv/project/manifest.json"}, plan, launcher));
//
// Compared by identity, not by name: every directory on the way to the file, links followed, with
// every directory and file that the Plan lets the server write. A file that is not there counts,
// too: the server could make it.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "lower/plan.h"
#include "sandbox/bind.h"
#include "sandbox/host_path.h"

namespace capgate::sandbox {

[[nodiscard]] std::expected<void, Refusal> check_policy_places(
    const std::vector<std::string>& files, const lower::Plan& plan, const Launcher& launcher);

}  // namespace capgate::sandbox
