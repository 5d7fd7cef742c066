#include "egress/address.h"

#include <arpa/inet.h>

#include "gtest/gtest.h"

namespace capgate::egress {
namespace {

Address parse(const char* text) {
  std::array<std::uint8_t, 16> bytes{};
  if (::inet_pton(AF_INET, text, bytes.data()) == 1) return Address::of_ipv4(bytes.data());
  EXPECT_EQ(::inet_pton(AF_INET6, text, bytes.data()), 1) << text;
  return Address::of_ipv6(bytes.data());
}

TEST(Address, OfAMappedOneIsTheIpv4ThatItIs) {
  const Address mapped = parse("::ffff:10.0.0.5");
  EXPECT_FALSE(mapped.ipv6);
  EXPECT_EQ(to_text(mapped), "10.0.0.5");
  EXPECT_TRUE(core::is_private_address(to_host(mapped)));
}

TEST(Address, ThatEmbedsAPrivateOneIsPrivate) {
  for (const char* text : {"64:ff9b::a00:5", "2002:a00:5::1", "::10.0.0.5", "fe80::1", "fd00::1",
                           "ff02::1", "127.8.9.10", "169.254.169.254", "100.64.0.1", "0.0.0.0"}) {
    EXPECT_TRUE(core::is_private_address(to_host(parse(text)))) << text;
  }
}

TEST(Address, GoesToTheKernelAndBack) {
  for (const char* text : {"44.128.0.7", "2a0e:44::7"}) {
    const SocketAddress address = to_socket_address(parse(text), 8443);
    EXPECT_EQ(Address::of(address.storage), parse(text));
    EXPECT_EQ(port_of(address.storage), 8443);
  }
}

TEST(OwnAddresses, AreWhatTheRoutingTableCallsLocal) {
  OwnAddresses own;
  const auto now = std::chrono::steady_clock::now();
  EXPECT_TRUE(own.contains(parse("127.0.0.1"), now));
  EXPECT_TRUE(own.contains(parse("127.77.0.1"), now));
  EXPECT_FALSE(own.contains(parse("198.51.100.7"), now));
}

}  // namespace
}  // namespace capgate::egress
