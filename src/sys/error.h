// What this machine refused: the call, why, and on what.
//
//   return std::unexpected(SysError{"open", errno, path});
//   reason(error) -> "Permission denied"
#pragma once

#include <expected>
#include <string>

namespace capgate::sys {

struct SysError {
  const char* call = "";
  int err = 0;
  std::string subject;
};

template <typename T>
using Sys = std::expected<T, SysError>;

[[nodiscard]] std::string reason(const SysError& error);  // "No such file or directory"

}  // namespace capgate::sys
