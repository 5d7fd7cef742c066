// The blocks of addresses that do not lead to the public internet, for those who hand them to
// another program: is_private_address() and its kind (core/host.h) answer from the same tables.
//
//   private_blocks()   exactly the addresses of is_private_address
//   closed_blocks()    of these, what a name does not lead to even with private=true
//   print({...})       "10.0.0.0/8"
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace capgate::core {

struct AddressBlock {
  bool ipv6 = false;
  std::array<std::uint8_t, 16> prefix{};  // ipv4 in the first four bytes; zero after `bits`
  unsigned bits = 0;

  friend auto operator<=>(const AddressBlock&, const AddressBlock&) = default;
};

// Sorted, IPv4 first; no block covers another one.
[[nodiscard]] std::vector<AddressBlock> private_blocks();
[[nodiscard]] std::vector<AddressBlock> closed_blocks();

// What is left of `block` without `hole`, as the fewest blocks.
[[nodiscard]] std::vector<AddressBlock> subtract(const AddressBlock& block,
                                                 const AddressBlock& hole);
// Without the addresses of IPv4 that are mapped into IPv6, ::ffff:0:0/96.
[[nodiscard]] std::vector<AddressBlock> without_mapped(const std::vector<AddressBlock>& blocks);
[[nodiscard]] bool covers(const AddressBlock& block, const AddressBlock& other);

[[nodiscard]] std::string print(const AddressBlock& block);

}  // namespace capgate::core
