#include "sandbox/capture.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "sys/fd.h"

namespace capgate::sandbox {
namespace {

using egress::wire::Family;
using egress::wire::SocketKind;

using lower::PlanNetwork;

PlanNetwork listeners(std::vector<std::uint16_t> ports) {
  return {.listeners = std::move(ports), .dns = true, .capture = PlanNetwork::Capture::listeners};
}

std::vector<std::string> shown(const Capture& capture) {
  std::vector<std::string> out;
  for (const CaptureSocket& socket : capture.sockets) {
    if ((socket.flags & orders::instead) != 0) continue;
    out.push_back(std::string(kind_name(socket.kind)) + ":" + std::to_string(socket.port));
  }
  return out;
}

using Names = std::vector<std::string>;

TEST(Capture, NothingDeclaredNeedsNothing) {
  const Capture capture = make_capture({}, WithProxy::no);
  EXPECT_FALSE(capture.is_needed());
  EXPECT_TRUE(capture.messages.empty());
}

TEST(Capture, EachPortHasOneSocketForBothFamilies) {
  const Capture capture = make_capture(listeners({443, 5432}), WithProxy::no);
  EXPECT_EQ(shown(capture),
            (Names{"capture:443", "capture:5432", "dns-datagrams:53", "dns-streams:53",
                   "refusals:6", "refusals:1", "refusals:6", "refusals:58"}));
  ASSERT_EQ(capture.messages.size(), 2U);
  EXPECT_EQ(capture.messages[0].flags, 0U);
  EXPECT_EQ(capture.messages[1].flags, orders::may_lack);
  const CaptureSocket& both = capture.sockets[0];
  const CaptureSocket& alone = capture.sockets[1];
  EXPECT_EQ(both.domain, std::uint32_t{AF_INET6});
  EXPECT_EQ(both.flags, orders::may_lack);
  EXPECT_EQ(both.address.size(), sizeof(sockaddr_in6));
  EXPECT_GT(both.backlog, 0U);
  EXPECT_EQ(alone.domain, std::uint32_t{AF_INET});
  EXPECT_EQ(alone.flags, orders::instead);
  EXPECT_EQ(alone.address.size(), sizeof(sockaddr_in));
}

// TCP 53 is DNS, whatever else is declared.
TEST(Capture, ThePortOfDnsIsBoundOnce) {
  EXPECT_EQ(shown(make_capture(listeners({53}), WithProxy::no)),
            (Names{"dns-datagrams:53", "dns-streams:53", "refusals:6", "refusals:1", "refusals:6",
                   "refusals:58"}));
}

TEST(Capture, ARedirectHasASocketInEachFamily) {
  const PlanNetwork network{.listeners = {443, 5432},
                            .published = {9000},
                            .every_port = true,
                            .dns = true,
                            .capture = PlanNetwork::Capture::redirect,
                            .redirect_port = 61000,
                            .localhost = {5432, 9000}};
  const Capture capture = make_capture(network, WithProxy::no);
  EXPECT_EQ(shown(capture),
            (Names{"redirect:61000", "redirect:61000", "capture:5432", "dns-datagrams:53",
                   "dns-streams:53", "refusals:6", "refusals:1", "refusals:6", "refusals:58"}));
  ASSERT_EQ(capture.messages.size(), 4U);
  EXPECT_EQ(capture.messages[2].protocol, std::uint32_t{NETLINK_NETFILTER});
  EXPECT_EQ(capture.messages[2].flags, 0U);
  EXPECT_EQ(capture.messages[3].flags, orders::with_ipv6);
  EXPECT_EQ(capture.sockets[1].flags, orders::with_ipv6 | orders::may_lack);
  EXPECT_TRUE(capture.inner_sockets);
}

TEST(Capture, TheProxyAvoidsPortsThatMeanSomething) {
  PlanNetwork network = listeners({3128, 3130});
  network.published = {3129};
  EXPECT_EQ(make_capture(network, WithProxy::yes).proxy_port, 3131U);
  EXPECT_EQ(make_capture(listeners({443}), WithProxy::yes).proxy_port, 3128U);
  EXPECT_EQ(make_capture(listeners({443}), WithProxy::no).proxy_port, 0U);
}

// Nothing may be reached, and every try leaves a line.
TEST(Capture, PublishedPortsAloneStillSeeWhatIsTried) {
  const Capture capture = make_capture({.published = {8080}}, WithProxy::no);
  EXPECT_TRUE(capture.inner_sockets);
  EXPECT_EQ(shown(capture), (Names{"dns-datagrams:53", "dns-streams:53", "refusals:6", "refusals:1",
                                   "refusals:6", "refusals:58"}));
  EXPECT_EQ(capture.messages.size(), 2U);
}

// The kernel runs the filter, on datagrams in place of packets. Their type is always "for us".
class Refusals : public testing::Test {
 protected:
  // The bytes that pass, 0 for none.
  static std::size_t passed(Family family, std::uint32_t protocol, const std::string& packet) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    const sys::Fd out(pair[0]);
    const sys::Fd in(pair[1]);
    auto code = refusal_filter(family, protocol);
    const sock_fprog program{.len = static_cast<unsigned short>(code.size()),
                             .filter = reinterpret_cast<sock_filter*>(code.data())};
    EXPECT_EQ(::setsockopt(in.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
    // A packet that the filter refuses is an error of the sender.
    (void)::send(out.get(), packet.data(), packet.size(), 0);
    std::array<char, 512> buffer{};
    const ssize_t size = ::recv(in.get(), buffer.data(), buffer.size(), 0);
    return size < 0 ? 0 : static_cast<std::size_t>(size);
  }

  static std::string ipv4(unsigned char protocol, const std::string& rest, char options = 0) {
    std::string out(20 + static_cast<std::size_t>(options) * 4, '\0');
    out[0] = static_cast<char>(0x45 + int{options});
    out[9] = static_cast<char>(protocol);
    return out + rest;
  }
  static std::string tcp(char flags, char sequence = 0) {
    std::string out(20, '\0');
    out[7] = sequence;
    out[13] = flags;
    return out;
  }
  static std::string icmp(char type, char code) {
    std::string out(200, 'x');
    out[0] = type;
    out[1] = code;
    return out;
  }
};

constexpr char reset_and_ack = 0x14;

TEST_F(Refusals, AnswersOfClosedPortsPass) {
  EXPECT_EQ(passed(Family::ipv4, IPPROTO_TCP, ipv4(IPPROTO_TCP, tcp(reset_and_ack))), 40U);
  EXPECT_EQ(passed(Family::ipv4, IPPROTO_TCP, ipv4(IPPROTO_TCP, tcp(reset_and_ack), 2)), 48U);
  EXPECT_EQ(passed(Family::ipv6, IPPROTO_TCP, tcp(reset_and_ack)), 20U);
  EXPECT_EQ(passed(Family::ipv4, IPPROTO_ICMP, ipv4(IPPROTO_ICMP, icmp(3, 3))), 128U);
  EXPECT_EQ(passed(Family::ipv6, IPPROTO_ICMPV6, icmp(1, 4)), 128U);
}

TEST_F(Refusals, NothingElsePasses) {
  for (const char flags : {'\x02', '\x12', '\x10', '\x04', '\x11', '\x18'}) {
    EXPECT_EQ(passed(Family::ipv4, IPPROTO_TCP, ipv4(IPPROTO_TCP, tcp(flags))), 0U) << int{flags};
    EXPECT_EQ(passed(Family::ipv6, IPPROTO_TCP, tcp(flags)), 0U) << int{flags};
  }
  EXPECT_EQ(passed(Family::ipv4, IPPROTO_TCP, ipv4(IPPROTO_TCP, tcp(reset_and_ack, 1))), 0U);
  EXPECT_EQ(passed(Family::ipv6, IPPROTO_TCP, tcp(reset_and_ack, 1)), 0U);
  EXPECT_EQ(passed(Family::ipv4, IPPROTO_ICMP, ipv4(IPPROTO_ICMP, icmp(3, 1))), 0U);
  EXPECT_EQ(passed(Family::ipv4, IPPROTO_ICMP, ipv4(IPPROTO_ICMP, icmp(8, 0))), 0U);
  EXPECT_EQ(passed(Family::ipv6, IPPROTO_ICMPV6, icmp(1, 3)), 0U);
  EXPECT_EQ(passed(Family::ipv4, IPPROTO_TCP, ipv4(IPPROTO_TCP, "")), 0U);
  EXPECT_EQ(passed(Family::ipv6, IPPROTO_TCP, "short"), 0U);
  EXPECT_EQ(passed(Family::ipv4, IPPROTO_ICMP, "\x45"), 0U);
}

}  // namespace
}  // namespace capgate::sandbox
