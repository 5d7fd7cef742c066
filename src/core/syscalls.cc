#include "core/syscalls.h"

#include "base/assert.h"

namespace capgate::core {
namespace {

// The searches below need it, and two equal names would hide one number.
consteval bool is_sorted_by_name() {
  for (std::size_t i = 1; i < syscall_table.size(); ++i) {
    if (!(syscall_table[i - 1].name < syscall_table[i].name)) return false;
  }
  return true;
}
static_assert(is_sorted_by_name());

}  // namespace

std::span<const Syscall> syscalls() { return syscall_table; }

const Syscall& syscall_info(SyscallId id) {
  CAPGATE_ASSERT(id.index < syscall_table.size());
  return syscall_table[id.index];
}

std::optional<SyscallId> find_syscall(std::string_view name) {
  const std::size_t index = detail::lower_bound(name);
  if (index == syscall_table.size() || syscall_table[index].name != name) return std::nullopt;
  return SyscallId{static_cast<std::uint16_t>(index)};
}

}  // namespace capgate::core
