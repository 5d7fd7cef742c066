// Every place of the host that decides what this user's servers may do, whichever one runs now:
// what a server wrote there would hold the next time, for itself or for another one.
#pragma once

#include <vector>

#include "cli/options.h"
#include "sandbox/policy_place.h"

namespace capgate::cli {

// --config, the user's and the system's configs, the manifests, programs and files that their
// entries name, approvals, packages and secrets; clients' configurations, and capgate's programs. A
// project's file is none: it only narrows, or was approved as it is. Those that are usual below
// HOME count besides those of XDG_*_HOME, which another caller may not have set.
[[nodiscard]] std::vector<sandbox::PolicyPlace> policy_places(const Arguments& arguments);

}  // namespace capgate::cli
