// What a sandbox keeps a server to where its manifest states no limit: the one table for those who
// hold limits and for those who compare them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/capability.h"

namespace capgate::core {

// Nothing: as much as the machine has.
[[nodiscard]] constexpr std::optional<LimitCapability> default_limit(LimitCapability::Kind kind) {
  using enum LimitCapability::Kind;
  switch (kind) {
    case disk: return LimitCapability{.kind = kind, .value = std::uint64_t{256} << 20U};
    case files: return LimitCapability{.kind = kind, .value = 1024};
    case memory: return LimitCapability{.kind = kind, .value = std::uint64_t{2} << 30U};
    case pids: return LimitCapability{.kind = kind, .value = 256};
    case cpu:
    case time: break;
  }
  return {};
}

}  // namespace capgate::core
