#include "sandbox/capture.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/ranges.h"
#include "sandbox/netlink.h"

namespace capgate::sandbox {
namespace {

using egress::wire::Family;
using egress::wire::SocketKind;

constexpr std::uint16_t dns_port = 53;
constexpr std::uint16_t usual_proxy_port = 3128;
constexpr std::uint32_t backlog = 512;

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string ipv4_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(address);
  return bytes_of(out);
}

std::string ipv6_address(const in6_addr& address, std::uint16_t port) {
  sockaddr_in6 out{};
  out.sin6_family = AF_INET6;
  out.sin6_port = htons(port);
  out.sin6_addr = address;
  return bytes_of(out);
}

class Builder {
 public:
  explicit Builder(const lower::PlanNetwork& network) : network_(network) {}

  Capture build(WithProxy proxy) {
    capture_.inner_sockets = !network_.published.empty();
    if (!network_.is_declared()) return std::move(capture_);
    // Also where nothing may be reached and only a port is published: then every try leaves a line.
    add_routes();
    if (network_.capture == lower::PlanNetwork::Capture::redirect) {
      add_redirects();
    } else {
      for (const std::uint16_t port : network_.listeners) add_capture(port);
    }
    if (proxy == WithProxy::yes) add_proxy();
    add_dns();
    add_refusals();
    return std::move(capture_);
  }

 private:
  void add_routes() {
    capture_.messages.push_back({.protocol = NETLINK_ROUTE,
                                 .bytes = local_route(Family::ipv4),
                                 .what = "the route of every IPv4 address"});
    capture_.messages.push_back({.protocol = NETLINK_ROUTE,
                                 .bytes = local_route(Family::ipv6),
                                 .flags = orders::may_lack,
                                 .what = "the route of every IPv6 address"});
  }

  // A redirected packet goes to the loopback address of its family.
  void add_redirects() {
    std::vector<std::uint16_t> ports;
    if (!network_.every_port) {
      std::ranges::copy_if(network_.listeners, std::back_inserter(ports),
                           [](std::uint16_t port) { return port != dns_port; });
    }
    const std::uint16_t to = network_.redirect_port;
    if (network_.every_port || !ports.empty()) {
      capture_.messages.push_back({.protocol = NETLINK_NETFILTER,
                                   .bytes = redirect({Family::ipv4, ports, to}),
                                   .what = "the redirect of IPv4"});
      capture_.messages.push_back({.protocol = NETLINK_NETFILTER,
                                   .bytes = redirect({Family::ipv6, ports, to}),
                                   .flags = orders::with_ipv6,
                                   .what = "the redirect of IPv6"});
    }
    add_stream({.kind = SocketKind::redirect,
                .port = to,
                .domain = AF_INET,
                .address = ipv4_address(INADDR_LOOPBACK, to)});
    add_stream({.kind = SocketKind::redirect,
                .port = to,
                .domain = AF_INET6,
                .flags = orders::with_ipv6 | orders::may_lack,
                .address = ipv6_address(in6addr_loopback, to),
                .options = {{IPPROTO_IPV6, IPV6_V6ONLY, 1}}});
    // The loopback is not redirected, and a port that the server listens at is its own.
    for (const std::uint16_t port : network_.localhost) {
      if (!contains(network_.published, port)) add_capture(port);
    }
  }

  void add_capture(std::uint16_t port) {
    if (port != dns_port) add_both(SocketKind::capture, SOCK_STREAM, port);
  }

  // One socket for both families; an IPv4 one where the other does not exist.
  void add_both(SocketKind kind, std::uint32_t type, std::uint16_t port) {
    CaptureSocket both{.kind = kind,
                       .port = port,
                       .domain = AF_INET6,
                       .type = type,
                       .backlog = type == SOCK_STREAM ? backlog : 0,
                       .flags = orders::may_lack,
                       .address = ipv6_address(in6addr_any, port),
                       .options = {{IPPROTO_IPV6, IPV6_V6ONLY, 0}}};
    CaptureSocket alone = both;
    alone.domain = AF_INET;
    alone.flags = orders::instead;
    alone.address = ipv4_address(INADDR_ANY, port);
    alone.options.clear();
    if (kind == SocketKind::dns_datagrams) {
      both.options.push_back({IPPROTO_IPV6, IPV6_RECVPKTINFO, 1});
      // The answer comes from the address that was asked, which no interface has.
      both.options.push_back({IPPROTO_IPV6, IPV6_FREEBIND, 1});
      alone.options.push_back({IPPROTO_IP, IP_PKTINFO, 1});
    }
    capture_.sockets.push_back(std::move(both));
    capture_.sockets.push_back(std::move(alone));
  }

  void add_stream(CaptureSocket socket) {
    socket.type = SOCK_STREAM;
    socket.backlog = backlog;
    capture_.sockets.push_back(std::move(socket));
  }

  void add_proxy() {
    std::uint16_t port = usual_proxy_port;
    while (contains(network_.listeners, port) || contains(network_.published, port) ||
           contains(network_.localhost, port) || port == network_.redirect_port) {
      ++port;
    }
    capture_.proxy_port = port;
    add_stream({.kind = SocketKind::proxy,
                .port = port,
                .domain = AF_INET,
                .address = ipv4_address(INADDR_LOOPBACK, port)});
  }

  void add_dns() {
    add_both(SocketKind::dns_datagrams, SOCK_DGRAM, dns_port);
    add_both(SocketKind::dns_streams, SOCK_STREAM, dns_port);
  }

  // Raw sockets, which get a copy of what the kernel answers. One packet socket would see the same,
  // but the end of a packet socket waits for every processor (milliseconds, at each exit).
  void add_refusals() {
    add_refusal(Family::ipv4, IPPROTO_TCP);
    add_refusal(Family::ipv4, IPPROTO_ICMP);
    add_refusal(Family::ipv6, IPPROTO_TCP);
    add_refusal(Family::ipv6, IPPROTO_ICMPV6);
  }

  void add_refusal(Family family, std::uint32_t protocol) {
    const bool is_ipv6 = family == Family::ipv6;
    capture_.sockets.push_back(
        {.kind = SocketKind::refusals,
         .port = static_cast<std::uint16_t>(protocol),
         .domain = is_ipv6 ? std::uint32_t{AF_INET6} : std::uint32_t{AF_INET},
         .type = SOCK_RAW,
         .protocol = protocol,
         .flags = is_ipv6 ? orders::with_ipv6 : 0,
         .address = is_ipv6 ? ipv6_address(in6addr_any, 0) : ipv4_address(INADDR_ANY, 0),
         .filter = refusal_filter(family, protocol)});
  }

  const lower::PlanNetwork& network_;
  Capture capture_;
};

}  // namespace

Capture make_capture(const lower::PlanNetwork& network, WithProxy proxy) {
  return Builder(network).build(proxy);
}

// X holds where the transport header begins. What a filter reads beyond the packet's end refuses
// it. A closed port answers a SYN with RST and ACK at sequence 0; the reset of a connection that
// was open carries its own sequence.
std::vector<lower::BpfInstruction> refusal_filter(Family family, std::uint32_t protocol) {
  constexpr std::uint16_t load_byte = BPF_LD | BPF_B | BPF_IND;
  constexpr std::uint16_t load_half = BPF_LD | BPF_H | BPF_IND;
  constexpr std::uint16_t load_word = BPF_LD | BPF_W | BPF_IND;
  constexpr std::uint16_t skip_ipv4_header = BPF_LDX | BPF_B | BPF_MSH;
  constexpr std::uint16_t skip_nothing = BPF_LDX | BPF_IMM;
  constexpr std::uint16_t and_with = BPF_ALU | BPF_AND | BPF_K;
  constexpr std::uint16_t equals = BPF_JMP | BPF_JEQ | BPF_K;
  constexpr std::uint16_t give = BPF_RET | BPF_K;
  constexpr std::uint32_t tcp_flags = 0x3f;
  constexpr std::uint32_t reset_and_ack = 0x14;
  constexpr std::uint32_t icmp_port_unreachable = 0x0303;
  constexpr std::uint32_t icmpv6_port_unreachable = 0x0104;
  constexpr std::uint32_t most_bytes = 128;
  const bool is_ipv6 = family == Family::ipv6;
  const lower::BpfInstruction skip{is_ipv6 ? skip_nothing : skip_ipv4_header, 0, 0, 0};
  if (protocol == IPPROTO_TCP) {
    return {skip,
            {load_byte, 0, 0, 13},
            {and_with, 0, 0, tcp_flags},
            {equals, 0, 3, reset_and_ack},
            {load_word, 0, 0, 4},
            {equals, 0, 1, 0},
            {give, 0, 0, most_bytes},
            {give, 0, 0, 0}};
  }
  return {skip,
          {load_half, 0, 0, 0},
          {equals, 0, 1, is_ipv6 ? icmpv6_port_unreachable : icmp_port_unreachable},
          {give, 0, 0, most_bytes},
          {give, 0, 0, 0}};
}

std::string_view kind_name(SocketKind kind) {
  switch (kind) {
    case SocketKind::capture: return "capture";
    case SocketKind::redirect: return "redirect";
    case SocketKind::proxy: return "proxy";
    case SocketKind::dns_datagrams: return "dns-datagrams";
    case SocketKind::dns_streams: return "dns-streams";
    case SocketKind::refusals: return "refusals";
    case SocketKind::published: return "published";
    case SocketKind::inner_sockets: return "inner-sockets";
  }
  return "";
}

}  // namespace capgate::sandbox
