// The files and programs that secrets come from. A `cmd:` runs outside of the sandbox, as the user:
// whoever can write its program, its interpreter or a file that its arguments name decides what
// runs there the next time.
//
//   secret_places(bindings, {.path = "/home/me/bin:/usr/bin", .directory = "/srv/w", ...})
//     cmd:token.sh --file=./key   ->   /home/me/bin/token.sh, its `#!` interpreter, ./key
#pragma once

#include <vector>

#include "lower/plan.h"
#include "sandbox/policy_place.h"
#include "sandbox/program.h"
#include "secrets/provider.h"

namespace capgate::cli {

[[nodiscard]] std::vector<sandbox::PolicyPlace> secret_places(
    const std::vector<secrets::Binding>& bindings, const sandbox::Caller& caller);

// The files that hold the values of what the plan seals: the server must not even read them. Of a
// stored secret these are the store and the key that `wrap` makes for it.
[[nodiscard]] std::vector<sandbox::PolicyPlace> sealed_files(
    const std::vector<secrets::Binding>& bindings, const lower::Plan& plan);

}  // namespace capgate::cli
