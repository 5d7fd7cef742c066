// Asks a person, on the terminal itself: standard input may be the pipe that a value comes from.
#pragma once

#include <string_view>

#include "secrets/secret.h"
#include "store/problem.h"

namespace capgate::store {

// One line, not echoed. Without a terminal an error that says how to do without.
[[nodiscard]] Outcome<secrets::Secret> ask(std::string_view prompt);

}  // namespace capgate::store
