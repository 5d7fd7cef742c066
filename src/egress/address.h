// A socket address as bytes, and its way to the policy's words and back.
//
//   Address::of(peer)                    from the kernel; ::ffff:a.b.c.d becomes IPv4
//   to_host({.ipv6 = false, .bytes = {8, 8, 8, 8}})  -> the HostPattern 8.8.8.8
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/host.h"
#include "sys/fd.h"

namespace capgate::egress {

struct Address {
  bool ipv6 = false;
  std::array<std::uint8_t, 16> bytes{};  // IPv4 in the first four

  [[nodiscard]] static std::optional<Address> of(const sockaddr_storage& address);
  [[nodiscard]] static Address of(const core::HostPattern& host);
  [[nodiscard]] static Address of_ipv4(const void* four_bytes);
  [[nodiscard]] static Address of_ipv6(const void* sixteen_bytes);
  friend auto operator<=>(const Address&, const Address&) = default;
};

[[nodiscard]] std::uint16_t port_of(const sockaddr_storage& address);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};
[[nodiscard]] SocketAddress to_socket_address(const Address& address, std::uint16_t port);

[[nodiscard]] std::string to_text(const Address& address);  // IPv6 without brackets
[[nodiscard]] core::HostPattern to_host(const Address& address);

inline constexpr Address loopback_ipv4{.ipv6 = false, .bytes = {127, 0, 0, 1}};
inline constexpr Address loopback_ipv6{.ipv6 = true,
                                       .bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

// Whether an address is one of this host's own, asked of its routing table: also what no interface
// shows (a whole local range) is found. An answer holds for a second.
class OwnAddresses {
 public:
  OwnAddresses();
  // True also if the kernel does not answer: then it cannot be ruled out.
  [[nodiscard]] bool contains(const Address& address, std::chrono::steady_clock::time_point now);

 private:
  struct Answer {
    bool is_own = true;
    std::chrono::steady_clock::time_point until;
  };
  [[nodiscard]] bool ask(const Address& address);

  sys::Fd netlink_;
  std::uint32_t sequence_ = 0;
  std::map<Address, Answer> answers_;
};

}  // namespace capgate::egress
