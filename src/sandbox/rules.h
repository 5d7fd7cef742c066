// The Landlock rules of a bound plan: what the mounts promise, said again at another place of the
// kernel.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "sandbox/parts.h"
#include "sandbox/program.h"

namespace capgate::sandbox {

// What of the host is mounted for programs and sockets.
struct Mounted {
  std::vector<const Program*> programs;
  std::vector<std::string> sockets;
};

// Adds them to `parts.bound`, from the Plan's rules and what is mounted.
[[nodiscard]] std::expected<void, Refusal> add_rules(const Parts& parts, const Mounted& mounted);

}  // namespace capgate::sandbox
