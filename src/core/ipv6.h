// IPv6 addresses as text, without a system call: RFC 4291 in, RFC 5952 out.
//
//   print_ipv6(*parse_ipv6("2001:DB8:0:0::1"))  -> "2001:db8::1"
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capgate::core {

using Ipv6Bytes = std::array<std::uint8_t, 16>;

// No zone, no prefix length, no brackets; a dotted IPv4 tail is not accepted.
[[nodiscard]] std::optional<Ipv6Bytes> parse_ipv6(std::string_view text);
[[nodiscard]] std::string print_ipv6(const Ipv6Bytes& address);
// ::ffff:0:0/96
[[nodiscard]] bool is_ipv4_mapped(const Ipv6Bytes& address);

}  // namespace capgate::core
