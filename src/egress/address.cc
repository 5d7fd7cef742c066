#include "egress/address.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <cstring>

namespace capgate::egress {

Address Address::of_ipv4(const void* four_bytes) {
  Address out;
  std::memcpy(out.bytes.data(), four_bytes, 4);
  return out;
}

Address Address::of_ipv6(const void* sixteen_bytes) {
  in6_addr address{};
  std::memcpy(&address, sixteen_bytes, sizeof(address));
  if (IN6_IS_ADDR_V4MAPPED(&address)) return of_ipv4(address.s6_addr + 12);
  Address out{.ipv6 = true};
  std::memcpy(out.bytes.data(), sixteen_bytes, out.bytes.size());
  return out;
}

std::optional<Address> Address::of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return of_ipv4(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  }
  if (address.ss_family == AF_INET6) {
    return of_ipv6(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  }
  return std::nullopt;
}

Address Address::of(const core::HostPattern& host) {
  return {.ipv6 = host.kind == core::HostPattern::Kind::ipv6, .bytes = host.address};
}

std::uint16_t port_of(const sockaddr_storage& address) {
  // The port stands at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

SocketAddress to_socket_address(const Address& address, std::uint16_t port) {
  SocketAddress out;
  if (address.ipv6) {
    auto& to = reinterpret_cast<sockaddr_in6&>(out.storage);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    std::memcpy(&to.sin6_addr, address.bytes.data(), sizeof(to.sin6_addr));
    out.size = sizeof(to);
  } else {
    auto& to = reinterpret_cast<sockaddr_in&>(out.storage);
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    std::memcpy(&to.sin_addr, address.bytes.data(), sizeof(to.sin_addr));
    out.size = sizeof(to);
  }
  return out;
}

std::string to_text(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.ipv6 ? AF_INET6 : AF_INET, address.bytes.data(), text.data(), text.size());
  return text.data();
}

core::HostPattern to_host(const Address& address) {
  // A form that the one parser does not take (an embedded IPv4 address) stays an address that no
  // rule covers.
  auto host = core::parse_host(to_text(address));
  if (host) return *std::move(host);
  return {
      .kind = core::HostPattern::Kind::ipv6, .text = to_text(address), .address = address.bytes};
}

OwnAddresses::OwnAddresses()
    : netlink_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {}

bool OwnAddresses::contains(const Address& address, std::chrono::steady_clock::time_point now) {
  constexpr std::size_t most_answers = 64;
  if (answers_.size() > most_answers) answers_.clear();
  Answer& answer = answers_[address];
  if (answer.until <= now) answer = {ask(address), now + std::chrono::seconds(1)};
  return answer.is_own;
}

bool OwnAddresses::ask(const Address& address) {
  struct {
    nlmsghdr head;
    rtmsg route;
    rtattr attribute;
    std::array<std::uint8_t, 16> bytes;
  } request{};
  const std::size_t size = address.ipv6 ? 16 : 4;
  request.head.nlmsg_len =
      static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof(rtmsg)) + RTA_LENGTH(size));
  request.head.nlmsg_type = RTM_GETROUTE;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.route.rtm_family = address.ipv6 ? AF_INET6 : AF_INET;
  request.route.rtm_dst_len = static_cast<unsigned char>(size * 8);
  request.attribute = {static_cast<unsigned short>(RTA_LENGTH(size)), RTA_DST};
  request.bytes = address.bytes;
  request.head.nlmsg_seq = ++sequence_;
  if (::send(netlink_.get(), &request, request.head.nlmsg_len, 0) < 0) return true;

  alignas(nlmsghdr) std::array<char, 4096> answer{};
  const ssize_t got = ::recv(netlink_.get(), answer.data(), answer.size(), 0);
  auto* head = reinterpret_cast<nlmsghdr*>(answer.data());
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg)))) return true;
  if (head->nlmsg_seq != sequence_) return true;
  if (head->nlmsg_type == NLMSG_ERROR) {
    // Without a route it is not ours, and connect() will say so.
    const int error = -static_cast<const nlmsgerr*>(NLMSG_DATA(head))->error;
    return error != ENETUNREACH && error != EHOSTUNREACH && error != ESRCH;
  }
  return static_cast<const rtmsg*>(NLMSG_DATA(head))->rtm_type == RTN_LOCAL;
}

}  // namespace capgate::egress
