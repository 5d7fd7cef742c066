// What the sandbox's own kernel refused: nobody listens there. It answers a SYN with a reset and a
// datagram with an ICMP message, and raw sockets of the sandbox show both.
//
//   read_refusal(packet)  -> tcp to 203.0.113.5 port 8443
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "egress/address.h"

namespace capgate::egress {

struct RefusedPort {
  Address address;
  std::uint16_t port = 0;
  std::string_view protocol;  // "tcp" or "udp"
};

// From an IP packet, which may be cut. Nothing if it tells of no refusal.
[[nodiscard]] std::optional<RefusedPort> read_refusal(std::span<const std::uint8_t> packet);

}  // namespace capgate::egress
