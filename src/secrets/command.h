// Runs a program whose standard output is a secret: no shell, no input, its stderr is ours.
//
//   Secret text = TRY(run_command({"pass", "show", "github/token"}, context, most));
//
// It has a process group of its own, which is the foreground of the terminal meanwhile if ours was:
// it may ask for a passphrase there. It is killed, with its group, when its time is over, when it
// writes too much, or when nobody waits any more; and when this process dies.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "secrets/provider.h"

namespace capgate::secrets {

[[nodiscard]] std::expected<Secret, Problem> run_command(const std::vector<std::string>& words,
                                                         const Context& context, std::size_t most);

// The file that PATH of this environment names; a name with a slash is one already. Empty: none.
[[nodiscard]] std::string find_in_path(const std::string& name,
                                       const std::vector<std::string>& environment);

// The value of a variable, or null. Not a copy: it may be a secret.
[[nodiscard]] const char* find_variable(std::string_view name,
                                        const std::vector<std::string>& environment);

}  // namespace capgate::secrets
