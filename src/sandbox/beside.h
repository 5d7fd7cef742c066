// Programs of capgate that lie beside it.
//
//   const sys::Fd broker = TRY(find_beside({.name = "capgate-broker", .needed_by = "net needs"}));
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/host_path.h"
#include "sys/fd.h"

namespace capgate::sandbox {

struct Beside {
  std::string_view name;
  std::string_view needed_by;       // begins the error when it is not there: "net needs"
  std::string_view otherwise = {};  // ends its help: "; or declare no net"
};

// The file in the directory of the running program, opened (O_PATH): regular, and nobody else than
// capgate's owner can write it.
[[nodiscard]] std::expected<sys::Fd, Refusal> find_beside(const Beside& program);

// capgate itself, and every program that is looked for beside it, there or not.
[[nodiscard]] std::vector<std::string> own_programs();

}  // namespace capgate::sandbox
