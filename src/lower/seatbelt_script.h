// The POSIX shell around sandbox-exec: the few lines that put declared variables and the broker's
// token into the environment without a command line, and the launcher of --script.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lower/artifact.h"

namespace capgate::lower::seatbelt {

inline constexpr std::string_view script_name = "launch.sh";
inline constexpr std::string_view token_variable = "CAPGATE_EGRESS_TOKEN";
inline constexpr unsigned environment_fd = 3;

// What stands between `env -i` and sandbox-exec: a shell that reads variables from descriptor 3
// (for each its name, its number of lines and its lines), sets the proxy variables and the limits,
// and becomes the command that follows. Empty if the policy needs none of it.
[[nodiscard]] std::string entry_script(const Input& input);

struct Launch {
  std::vector<std::string> environment;  // NAME=VALUE, fixed
  std::vector<std::pair<std::string, std::string>> parameters;
  std::vector<std::string> variables;  // names that the caller's environment must hold
  bool private_home = false;           // HOME lies in TMPDIR
};
[[nodiscard]] File make_script(const Input& input, const Launch& launch);

}  // namespace capgate::lower::seatbelt
