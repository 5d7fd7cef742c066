// Blocks of addresses as other formats write them: "10.0.0.0/8", "fc00::/7", "192.0.2.1".
#pragma once

#include <optional>
#include <string_view>

#include "core/address_blocks.h"
#include "core/host.h"

namespace capgate::imports {

// Bits after the prefix are cleared. An address alone is a block of one.
[[nodiscard]] std::optional<core::AddressBlock> parse_block(std::string_view text);

// No address of it leads to the public internet.
[[nodiscard]] bool is_private(const core::AddressBlock& block);

[[nodiscard]] bool holds(const core::AddressBlock& block, const core::HostPattern& address);

}  // namespace capgate::imports
