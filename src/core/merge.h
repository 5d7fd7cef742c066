// The union of a manifest's capabilities. Never wider and never narrower than its inputs together,
// whatever their order: a read of /w/** with a write of /w/out/** stays a read-only tree with a
// writable child. Costs n log n.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "core/manifest.h"
#include "core/policy.h"

namespace capgate::core {

// With `tool`: what that tool needs, that is serverCapabilities and its own.
[[nodiscard]] Checked<Policy> merge(const Manifest& manifest,
                                    std::optional<std::uint32_t> tool = std::nullopt);

}  // namespace capgate::core
