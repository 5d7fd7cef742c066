#include "egress/refusal.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace capgate::egress {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes ipv4(std::uint8_t protocol, Bytes payload) {
  Bytes out = {0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 203, 0, 113, 5, 198, 51, 100, 7};
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

Bytes ipv6(std::uint8_t next, Bytes payload) {
  Bytes out = {0x60, 0, 0, 0, 0, 0, next, 64};
  Bytes address = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  out.insert(out.end(), address.begin(), address.end());
  out.insert(out.end(), address.begin(), address.end());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

// From port 8443, with these flags and this sequence number.
Bytes tcp(std::uint8_t flags, std::uint8_t sequence) {
  return {0x20, 0xfb, 0x9c, 0x40, 0, 0, 0, sequence, 0, 0, 0, 1, 0x50, flags, 0, 0, 0, 0, 0, 0};
}

std::string told(const Bytes& packet) {
  const auto refusal = read_refusal(packet);
  if (!refusal) return "";
  return std::string(refusal->protocol) + " " + to_text(refusal->address) + " " +
         std::to_string(refusal->port);
}

TEST(Refusal, IsTheResetThatAnswersASyn) {
  EXPECT_EQ(told(ipv4(6, tcp(0x14, 0))), "tcp 203.0.113.5 8443");
  EXPECT_EQ(told(ipv6(6, tcp(0x14, 0))), "tcp 2001:db8::9 8443");
}

TEST(Refusal, IsNoOtherSegment) {
  EXPECT_EQ(told(ipv4(6, tcp(0x14, 1))), "") << "the reset of a connection that stood";
  EXPECT_EQ(told(ipv4(6, tcp(0x02, 0))), "") << "a SYN";
  EXPECT_EQ(told(ipv4(6, tcp(0x04, 0))), "") << "a bare reset";
  EXPECT_EQ(told(ipv4(17, tcp(0x14, 0))), "") << "a datagram";
}

TEST(Refusal, IsTheUnreachablePortOfADatagram) {
  Bytes inner = ipv4(17, {0, 99, 0x13, 0x88, 0, 8, 0, 0});
  Bytes icmp = {3, 3, 0, 0, 0, 0, 0, 0};
  icmp.insert(icmp.end(), inner.begin(), inner.end());
  EXPECT_EQ(told(ipv4(1, icmp)), "udp 198.51.100.7 5000");
  icmp[1] = 1;
  EXPECT_EQ(told(ipv4(1, icmp)), "") << "an unreachable host";

  inner = ipv6(17, {0, 99, 0x13, 0x88, 0, 8, 0, 0});
  icmp = {1, 4, 0, 0, 0, 0, 0, 0};
  icmp.insert(icmp.end(), inner.begin(), inner.end());
  EXPECT_EQ(told(ipv6(58, icmp)), "udp 2001:db8::9 5000");
}

TEST(Refusal, OfACutPacketIsNothing) {
  for (const Bytes& whole : {ipv4(6, tcp(0x14, 0)), ipv6(6, tcp(0x14, 0))}) {
    for (std::size_t size = 0; size < whole.size() - 6; ++size) {
      EXPECT_EQ(told({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), "");
    }
  }
  Bytes long_head = ipv4(6, tcp(0x14, 0));
  long_head[0] = 0x4f;
  EXPECT_EQ(told(long_head), "") << "a header that is longer than the packet";
}

}  // namespace
}  // namespace capgate::egress
