// The two lists that a reviewer reads: calls that are allowed whatever their arguments are, by
// purpose, and calls that are refused by name. Calls that are neither here nor in seccomp.cc, where
// arguments decide, are ENOSYS. Data only.
#pragma once

#include <span>
#include <string_view>

#include "core/syscalls.h"
#include "lower/seccomp.h"

namespace capgate::lower {

struct CallGroup {
  std::string_view purpose;
  Action action;
  std::span<const core::SyscallId> calls;
};

[[nodiscard]] std::span<const CallGroup> allowed_groups();
[[nodiscard]] std::span<const CallGroup> refused_groups();
// Changes of what a file is, beside its contents, its name and its mode: allowed, unless a grant is
// weaker than fs:write (SeccompNeeds::fixed_attributes).
[[nodiscard]] std::span<const core::SyscallId> attribute_calls();

}  // namespace capgate::lower
