// Every place of the host that decides what this user's servers may do, whichever one runs now:
// what a server wrote there would hold the next time, for itself or for another one.
#pragma once

#include <vector>

#include "cli/options.h"
#include "sandbox/policy_place.h"
#include "secrets/provider.h"

namespace capgate::cli {

// --config, the user's and the system's configs, the manifests that their entries name, approvals,
// packages and secrets. A project's file is none: it only narrows, or was approved as it is. Those
// that are usual below HOME count besides those of XDG_*_HOME, which another caller may not have
// set.
[[nodiscard]] std::vector<sandbox::PolicyPlace> policy_places(const Arguments& arguments);

// The files and programs that this server's secrets come from.
[[nodiscard]] std::vector<sandbox::PolicyPlace> secret_places(
    const std::vector<secrets::Binding>& bindings);

}  // namespace capgate::cli
