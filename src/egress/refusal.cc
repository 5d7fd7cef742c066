#include "egress/refusal.h"

#include <cstddef>

namespace capgate::egress {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint8_t icmp = 1;
constexpr std::uint8_t tcp = 6;
constexpr std::uint8_t udp = 17;
constexpr std::uint8_t icmp_ipv6 = 58;

std::uint16_t word_at(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8U | bytes[at + 1]);
}

struct Packet {
  std::uint8_t protocol = 0;
  Address source;
  Address destination;
  Bytes payload;
};

std::optional<Packet> read_packet(Bytes bytes) {
  if (bytes.empty()) return std::nullopt;
  const unsigned version = bytes[0] >> 4U;
  if (version == 4) {
    const std::size_t head = std::size_t{4} * (bytes[0] & 15U);
    if (head < 20 || bytes.size() < head) return std::nullopt;
    return Packet{bytes[9], Address::of_ipv4(&bytes[12]), Address::of_ipv4(&bytes[16]),
                  bytes.subspan(head)};
  }
  if (version == 6 && bytes.size() >= 40) {
    return Packet{bytes[6], Address::of_ipv6(&bytes[8]), Address::of_ipv6(&bytes[24]),
                  bytes.subspan(40)};
  }
  return std::nullopt;
}

// RST and ACK with sequence number 0: the answer to a SYN, sent by the port that was asked for.
std::optional<RefusedPort> read_reset(const Packet& packet) {
  constexpr unsigned reset_and_ack = 0x14;
  const Bytes bytes = packet.payload;
  if (bytes.size() < 14 || bytes[13] != reset_and_ack) return std::nullopt;
  if (word_at(bytes, 4) != 0 || word_at(bytes, 6) != 0) return std::nullopt;
  return RefusedPort{packet.source, word_at(bytes, 0), "tcp"};
}

// "Port unreachable" carries the start of the datagram that it answers.
std::optional<RefusedPort> read_unreachable(const Packet& packet) {
  const unsigned type = packet.protocol == icmp ? 3 : 1;
  const unsigned code = packet.protocol == icmp ? 3 : 4;
  if (packet.payload.size() < 8 || packet.payload[0] != type || packet.payload[1] != code) {
    return std::nullopt;
  }
  const auto inner = read_packet(packet.payload.subspan(8));
  if (!inner || inner->protocol != udp || inner->payload.size() < 4) return std::nullopt;
  return RefusedPort{inner->destination, word_at(inner->payload, 2), "udp"};
}

}  // namespace

std::optional<RefusedPort> read_refusal(Bytes bytes) {
  const auto packet = read_packet(bytes);
  if (!packet) return std::nullopt;
  if (packet->protocol == tcp) return read_reset(*packet);
  if (packet->protocol == icmp || packet->protocol == icmp_ipv6) return read_unreachable(*packet);
  return std::nullopt;
}

}  // namespace capgate::egress
