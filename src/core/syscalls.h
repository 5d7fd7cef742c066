// System calls by name, for code that may not include a system header.
//
//   constexpr SyscallId id = syscall("openat");   // a misspelt name does not compile
//   syscall_info(id).x86_64                       -> 257
//   find_syscall("openat")                        -> the same id, for names that are read from text
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/syscalls_table.h"

namespace capgate::core {

// Which entry of the table: smaller than a name and the same on every architecture.
struct SyscallId {
  std::uint16_t index = 0;

  friend auto operator<=>(const SyscallId&, const SyscallId&) = default;
};

[[nodiscard]] std::span<const Syscall> syscalls();
[[nodiscard]] const Syscall& syscall_info(SyscallId id);
[[nodiscard]] std::optional<SyscallId> find_syscall(std::string_view name);

namespace detail {

// Called only for a name that is not in the table; not constexpr, so the compiler stops there.
void no_such_system_call();

constexpr std::size_t lower_bound(std::string_view name) {
  std::size_t low = 0;
  std::size_t high = syscall_table.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (syscall_table[middle].name < name) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace detail

[[nodiscard]] consteval SyscallId syscall(std::string_view name) {
  const std::size_t index = detail::lower_bound(name);
  if (index == syscall_table.size() || syscall_table[index].name != name) {
    detail::no_such_system_call();
  }
  return SyscallId{static_cast<std::uint16_t>(index)};
}

// A table of calls: `constexpr auto waiting = syscall_list({"poll", "ppoll"});`
template <std::size_t N>
[[nodiscard]] consteval std::array<SyscallId, N> syscall_list(const std::string_view (&names)[N]) {
  std::array<SyscallId, N> ids{};
  for (std::size_t i = 0; i < N; ++i) ids[i] = syscall(names[i]);
  return ids;
}

}  // namespace capgate::core
