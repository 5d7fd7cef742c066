#include "core/address_blocks.h"

#include <algorithm>
#include <span>

#include "base/format.h"
#include "core/host.h"
#include "core/ipv6.h"

namespace capgate::core {
namespace {

bool starts_with_bits(std::span<const std::uint8_t> address, std::span<const std::uint8_t> prefix,
                      unsigned bits) {
  const std::size_t whole = bits / 8;
  if (!std::ranges::equal(address.first(whole), prefix.first(whole))) return false;
  if (bits % 8 == 0) return true;
  const unsigned shift = 8 - bits % 8;
  return (address[whole] >> shift) == (prefix[whole] >> shift);
}

struct Ipv4Block {
  std::array<std::uint8_t, 4> prefix;
  unsigned bits;
};
// IANA special-purpose registry, with multicast and the broadcast range; and the one address at
// which a cloud's hosts answer their guests outside all of these (Azure, 168.63.129.16).
constexpr Ipv4Block private_ipv4[] = {
    {{0, 0, 0, 0}, 8},      {{10, 0, 0, 0}, 8},     {{100, 64, 0, 0}, 10}, {{127, 0, 0, 0}, 8},
    {{169, 254, 0, 0}, 16}, {{172, 16, 0, 0}, 12},  {{192, 0, 0, 0}, 24},  {{192, 0, 2, 0}, 24},
    {{192, 88, 99, 0}, 24}, {{192, 168, 0, 0}, 16}, {{198, 18, 0, 0}, 15}, {{198, 51, 100, 0}, 24},
    {{203, 0, 113, 0}, 24}, {{224, 0, 0, 0}, 4},    {{240, 0, 0, 0}, 4},   {{168, 63, 129, 16}, 32},
};

struct Ipv6Block {
  std::array<std::uint8_t, 8> prefix;
  unsigned bits;
};
constexpr Ipv6Block private_ipv6[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0}, 8},               // unspecified, loopback, mapped, compatible
    {{0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0}, 32},  // NAT64, well-known and local use
    {{0x01, 0, 0, 0, 0, 0, 0, 0}, 8},            // discard-only
    {{0x20, 0x01, 0, 0, 0, 0, 0, 0}, 23},        // Teredo, benchmarking, ORCHID
    {{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0}, 32},  // documentation
    {{0x20, 0x02, 0, 0, 0, 0, 0, 0}, 16},        // 6to4 embeds an IPv4 address
    {{0x3f, 0xff, 0, 0, 0, 0, 0, 0}, 20},        // documentation
    {{0x5f, 0, 0, 0, 0, 0, 0, 0}, 16},           // segment routing
    {{0xfc, 0, 0, 0, 0, 0, 0, 0}, 7},            // unique local
    {{0xfe, 0x80, 0, 0, 0, 0, 0, 0}, 10},        // link-local
    {{0xfe, 0xc0, 0, 0, 0, 0, 0, 0}, 10},        // site-local
    {{0xff, 0, 0, 0, 0, 0, 0, 0}, 8},            // multicast
};

constexpr Ipv4Block site_ipv4[] = {
    {{10, 0, 0, 0}, 8}, {{100, 64, 0, 0}, 10}, {{172, 16, 0, 0}, 12}, {{192, 168, 0, 0}, 16}};
constexpr Ipv6Block site_ipv6[] = {{{0xfc, 0, 0, 0, 0, 0, 0, 0}, 7}};
// A list of what is open and not of what is closed: a block that nobody thought of stays closed.
// 192.0.0.0/24 is not in it, where a cloud has its metadata (192.0.0.192).
constexpr Ipv4Block borrowed_ipv4[] = {{{192, 0, 2, 0}, 24},
                                       {{198, 18, 0, 0}, 15},
                                       {{198, 51, 100, 0}, 24},
                                       {{203, 0, 113, 0}, 24},
                                       {{240, 0, 0, 0}, 4}};
constexpr std::string_view broadcast = "255.255.255.255";
constexpr Ipv6Block borrowed_ipv6[] = {{{0x20, 0x01, 0, 0x02, 0, 0, 0, 0}, 48},
                                       {{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0}, 32},
                                       {{0x3f, 0xff, 0, 0, 0, 0, 0, 0}, 20}};
// Those that lie in blocks of sites.
constexpr std::string_view metadata_services[] = {"100.100.100.200", "fd00:ec2::254",
                                                  "fd20:ce::254"};

bool is_in(const HostPattern& address, std::span<const Ipv4Block> ipv4,
           std::span<const Ipv6Block> ipv6) {
  const auto covers = [&](const auto& block) {
    return starts_with_bits(address.address, block.prefix, block.bits);
  };
  if (address.kind == HostPattern::Kind::ipv4) return std::ranges::any_of(ipv4, covers);
  if (address.kind == HostPattern::Kind::ipv6) return std::ranges::any_of(ipv6, covers);
  return false;
}

template <typename Block>
AddressBlock to_block(const Block& block) {
  AddressBlock out{.ipv6 = block.prefix.size() != 4, .bits = block.bits};
  std::ranges::copy(block.prefix, out.prefix.begin());
  return out;
}

std::vector<AddressBlock> to_blocks(std::span<const Ipv4Block> ipv4,
                                    std::span<const Ipv6Block> ipv6) {
  std::vector<AddressBlock> out;
  out.reserve(ipv4.size() + ipv6.size());
  for (const Ipv4Block& block : ipv4) out.push_back(to_block(block));
  for (const Ipv6Block& block : ipv6) out.push_back(to_block(block));
  std::ranges::sort(out);
  // One that is covered has its cover somewhere before it.
  const auto covered = std::ranges::unique(out, covers);
  out.erase(covered.begin(), covered.end());
  return out;
}

void append(std::vector<AddressBlock>& to, const std::vector<AddressBlock>& blocks) {
  to.insert(to.end(), blocks.begin(), blocks.end());
}

AddressBlock single(std::string_view address) {
  const HostPattern host = *parse_host(address);
  const bool ipv6 = host.kind == HostPattern::Kind::ipv6;
  return {.ipv6 = ipv6, .prefix = host.address, .bits = ipv6 ? 128U : 32U};
}

}  // namespace

bool is_private_address(const HostPattern& address) {
  return is_in(address, private_ipv4, private_ipv6);
}

bool is_site_address(const HostPattern& address) {
  return is_in(address, site_ipv4, site_ipv6) &&
         std::ranges::find(metadata_services, address.text) == std::end(metadata_services);
}

bool is_private_network_address(const HostPattern& address) {
  return is_site_address(address) ||
         (is_in(address, borrowed_ipv4, borrowed_ipv6) && address.text != broadcast);
}

bool covers(const AddressBlock& block, const AddressBlock& other) {
  return block.ipv6 == other.ipv6 && block.bits <= other.bits &&
         starts_with_bits(other.prefix, block.prefix, block.bits);
}

std::vector<AddressBlock> subtract(const AddressBlock& block, const AddressBlock& hole) {
  if (covers(hole, block)) return {};
  if (!covers(block, hole)) return {block};
  std::vector<AddressBlock> out;
  out.reserve(hole.bits - block.bits);
  for (unsigned bits = block.bits; bits < hole.bits; ++bits) {
    // The half that the hole is not in: its prefix, with the next bit turned round.
    AddressBlock half{.ipv6 = block.ipv6, .bits = bits + 1};
    for (unsigned bit = 0; bit <= bits; ++bit) {
      const auto mask = static_cast<std::uint8_t>(0x80U >> (bit % 8));
      const bool is_set = (hole.prefix[bit / 8] & mask) != 0;
      if (is_set != (bit == bits)) half.prefix[bit / 8] |= mask;
    }
    out.push_back(half);
  }
  std::ranges::sort(out);
  return out;
}

std::vector<AddressBlock> without_mapped(const std::vector<AddressBlock>& blocks) {
  constexpr AddressBlock mapped{
      .ipv6 = true, .prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, .bits = 96};
  std::vector<AddressBlock> out;
  for (const AddressBlock& block : blocks) append(out, subtract(block, mapped));
  return out;
}

std::vector<AddressBlock> private_blocks() { return to_blocks(private_ipv4, private_ipv6); }

std::vector<AddressBlock> closed_blocks() {
  std::vector<AddressBlock> open = to_blocks(site_ipv4, site_ipv6);
  append(open, to_blocks(borrowed_ipv4, borrowed_ipv6));
  std::vector<AddressBlock> out = private_blocks();
  for (const AddressBlock& hole : open) {
    std::vector<AddressBlock> left;
    for (const AddressBlock& block : out) append(left, subtract(block, hole));
    out = std::move(left);
  }
  for (const std::string_view address : metadata_services) out.push_back(single(address));
  out.push_back(single(broadcast));
  std::ranges::sort(out);
  return out;
}

std::string print(const AddressBlock& block) {
  if (block.ipv6) return format("{}/{}", print_ipv6(block.prefix), block.bits);
  return format("{}.{}.{}.{}/{}", block.prefix[0], block.prefix[1], block.prefix[2],
                block.prefix[3], block.bits);
}

}  // namespace capgate::core
