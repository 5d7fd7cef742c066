// What the kernel knows of the memory at an address.
//
//   flags_of(secret.view().data()).contains(" lo ")   it is locked
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "sys/file.h"

namespace capgate::support {

// The flags of the mapping that holds `address`, from /proc/self/smaps.
[[nodiscard]] inline std::string flags_of(const void* address) {
  const auto maps = sys::read_file("/proc/self/smaps", std::size_t{64} << 20U);
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::size_t at = 0;
  bool is_inside = false;
  while (at < maps->size()) {
    const std::size_t end = maps->find('\n', at);
    const std::string line = maps->substr(at, end - at);
    at = end + 1;
    unsigned long from = 0;
    unsigned long to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      is_inside = from <= wanted && wanted < to;
    }
    if (is_inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

}  // namespace capgate::support
