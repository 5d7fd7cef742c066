#include "import/cidr.h"

#include <algorithm>

#include "base/text.h"

namespace capgate::imports {

using core::AddressBlock;
using core::HostPattern;

std::optional<AddressBlock> parse_block(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto host = core::parse_host(text.substr(0, slash));
  if (!host) return {};
  if (host->kind != HostPattern::Kind::ipv4 && host->kind != HostPattern::Kind::ipv6) return {};
  AddressBlock block{
      .ipv6 = host->kind == HostPattern::Kind::ipv6, .prefix = host->address, .bits = 0};
  const unsigned most = block.ipv6 ? 128 : 32;
  block.bits = most;
  if (slash != std::string_view::npos) {
    const auto bits = parse_decimal(text.substr(slash + 1));
    if (!bits || *bits > most) return {};
    block.bits = static_cast<unsigned>(*bits);
  }
  for (unsigned bit = block.bits; bit < 128; ++bit) {
    block.prefix.at(bit / 8) &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  }
  return block;
}

bool is_private(const AddressBlock& block) {
  return std::ranges::any_of(core::private_blocks(), [&](const AddressBlock& closed) {
    return core::covers(closed, block);
  });
}

bool holds(const AddressBlock& block, const HostPattern& address) {
  if (address.kind != HostPattern::Kind::ipv4 && address.kind != HostPattern::Kind::ipv6) {
    return false;
  }
  const bool ipv6 = address.kind == HostPattern::Kind::ipv6;
  return core::covers(block, {.ipv6 = ipv6, .prefix = address.address, .bits = ipv6 ? 128U : 32U});
}

}  // namespace capgate::imports
