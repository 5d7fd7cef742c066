#include "egress/broker.h"

#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/ranges.h"
#include "egress/dns.h"
#include "egress/io.h"
#include "egress/refusal.h"

namespace capgate::egress {
namespace {

using wire::SocketKind;

constexpr std::size_t most_dns_bytes = 1232;
constexpr std::size_t most_dns_streams = 32;
constexpr int packets_in_a_row = 64;
constexpr std::size_t most_names = 4096;

std::uint32_t random_number() {
  std::uint32_t number = 0;
  (void)!::getrandom(&number, sizeof(number), GRND_NONBLOCK);
  return number;
}

// Where a captured connection was meant to go.
std::optional<sockaddr_storage> destination(const sys::Fd& client, SocketKind kind) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* where = reinterpret_cast<sockaddr*>(&address);
  if (::getsockname(client.get(), where, &size) != 0) return std::nullopt;
  if (kind != SocketKind::redirect) return address;
  // The number is the same for both families.
  const int level = address.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
  size = sizeof(address);
  if (::getsockopt(client.get(), level, SO_ORIGINAL_DST, where, &size) != 0) return std::nullopt;
  return address;
}

// One descriptor from capgate-init, which answers at once or not at all.
sys::Fd receive_inner_socket(const sys::Fd& channel, wire::Family family) {
  // What an earlier broker asked for and did not live to take.
  char stale = 0;
  while (::recv(channel.get(), &stale, sizeof(stale), MSG_DONTWAIT) > 0) {
  }
  if (::send(channel.get(), &family, sizeof(family), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return {};
  pollfd poll{.fd = channel.get(), .events = POLLIN, .revents = 0};
  constexpr int patience = 1000;
  if (::poll(&poll, 1, patience) != 1) return {};
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(channel.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0) return {};
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
  return sys::Fd(fd);
}

// What a listener accepts has its options.
void send_at_once(const Socket& listener) {
  const int on = 1;
  (void)::setsockopt(listener.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool has_caller(const Socket& listener) {
  pollfd poll{.fd = listener.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, 0) != 0;
}

}  // namespace

// Names asked for by datagram. The answer leaves from the address that was asked, or the client
// would not take it.
class Broker::DnsDatagrams final : public Owner {
 public:
  explicit DnsDatagrams(Broker& broker) : broker_(broker) {}

  void on_event(Socket& socket) override {
    for (int i = 0; i < packets_in_a_row; ++i) {
      if (!answer_one(socket)) return;
    }
    broker_.loop_.look_again(socket);
  }

 private:
  bool answer_one(Socket& socket) {
    std::array<std::uint8_t, most_dns_bytes> query;
    std::array<std::uint8_t, most_dns_bytes> answer;
    sockaddr_storage from{};
    alignas(cmsghdr) std::array<char, 256> control;
    iovec part{query.data(), query.size()};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof(from);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(socket.fd(), &message, MSG_DONTWAIT);
    if (size < 0) {
      socket.is_readable = false;
      return false;
    }
    const Zone zone{broker_.policy_, broker_.names_, broker_.has_ipv6_};
    const DnsReply reply =
        answer_dns(std::span(query).first(static_cast<std::size_t>(size)), zone, answer);
    if (reply.size == 0) return true;
    broker_.journal_.tell_dns(reply);
    // The control message that came says at which address: it goes back as it is.
    part = {answer.data(), reply.size};
    message.msg_flags = 0;
    (void)::sendmsg(socket.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return true;
  }

  Broker& broker_;
};

// A raw socket shows the IP header in IPv4 only; in IPv6 it is made up from what the kernel says.
class Broker::Refusals final : public Owner {
 public:
  Refusals(Broker& broker, std::uint8_t protocol) : broker_(broker), protocol_(protocol) {}

  void on_event(Socket& socket) override {
    for (int i = 0; i < packets_in_a_row; ++i) {
      std::array<std::uint8_t, ipv6_header + 128> packet{};
      sockaddr_storage from{};
      socklen_t from_size = sizeof(from);
      const ssize_t size = ::recvfrom(socket.fd(), &packet[ipv6_header], 128, MSG_DONTWAIT,
                                      reinterpret_cast<sockaddr*>(&from), &from_size);
      if (size < 0) {
        socket.is_readable = false;
        return;
      }
      const auto whole = std::span(packet).first(ipv6_header + static_cast<std::size_t>(size));
      if (from.ss_family == AF_INET) {
        tell(read_refusal(whole.subspan(ipv6_header)));
      } else {
        packet[0] = 6U << 4U;
        packet[6] = protocol_;
        std::memcpy(&packet[8], &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr, 16);
        tell(read_refusal(whole));
      }
    }
    broker_.loop_.look_again(socket);
  }

 private:
  static constexpr std::size_t ipv6_header = 40;

  void tell(const std::optional<RefusedPort>& port) {
    if (!port) return;
    // Somebody outside came to a published port before the server listened there.
    const bool is_loopback = port->address == loopback_ipv4 || port->address == loopback_ipv6;
    if (is_loopback && contains(broker_.published_, port->port)) return;
    broker_.journal_.tell_refused(broker_.connections_.host_behind(port->address, port->port),
                                  *port);
  }

  Broker& broker_;
  std::uint8_t protocol_;
};

Broker::Broker(Policy policy, int audit_fd, int stderr_fd)
    : policy_(std::move(policy)),
      names_(most_names, random_number()),
      journal_(loop_, policy_, audit_fd, stderr_fd),
      connections_(loop_, policy_, names_, journal_),
      rate_(policy_.limits.per_second) {}

Broker::~Broker() = default;

bool Broker::take(SocketKind kind, std::uint16_t port, sys::Fd fd) {
  if (kind == SocketKind::inner_sockets) {
    inner_sockets_ = std::move(fd);
    return true;
  }
  SocketPtr socket = loop_.adopt(std::move(fd));
  if (!socket) return false;
  if (kind == SocketKind::published) published_.push_back(port);
  switch (kind) {
    case SocketKind::dns_datagrams:
      readers_.push_back(std::make_unique<DnsDatagrams>(*this));
      break;
    case SocketKind::refusals:
      readers_.push_back(std::make_unique<Refusals>(*this, static_cast<std::uint8_t>(port)));
      break;
    case SocketKind::capture:
    case SocketKind::redirect:
    case SocketKind::proxy:
    case SocketKind::dns_streams:
    case SocketKind::published:
      send_at_once(*socket);
      accept(std::move(socket), {kind, port});
      return true;
    case SocketKind::inner_sockets: return false;
  }
  socket->owner = readers_.back().get();
  sockets_.push_back(std::move(socket));
  return true;
}

bool Broker::has_room() {
  if (connections_.is_used_up()) {
    connections_.tell_used_up();
    return false;
  }
  if (connections_.live() < policy_.limits.connections) return true;
  journal_.tell_limit("connections", "too many connections at once; see --net-limit connections=");
  return false;
}

Task Broker::accept(SocketPtr socket, Listener listener) {
  listeners_.push_back(socket.get());
  while (!is_finishing_) {
    if (co_await loop_.readable(*socket) == Woken::cancelled) co_return;
    Time next;
    if (!rate_.take(loop_.now(), next)) {
      if (!has_caller(*socket)) {
        socket->is_readable = false;
        continue;
      }
      journal_.tell_limit("rate", "too many new connections a second; see --net-limit rate=");
      if (co_await loop_.sleep_until(next) == Woken::cancelled) co_return;
      continue;
    }
    sys::Fd client(::accept4(socket->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client.get() >= 0) {
      serve(std::move(client), listener);
      continue;
    }
    rate_.give_back();
    if (errno == EAGAIN) {
      socket->is_readable = false;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      journal_.tell_limit("descriptors", "no descriptor is left for another connection");
      const Time later = loop_.now() + std::chrono::milliseconds(100);
      if (co_await loop_.sleep_until(later) == Woken::cancelled) co_return;
    }
  }
}

void Broker::serve(sys::Fd client, Listener listener) {
  const bool is_captured =
      listener.kind == SocketKind::capture || listener.kind == SocketKind::redirect;
  const auto where = is_captured ? destination(client, listener.kind) : std::nullopt;
  SocketPtr socket = loop_.adopt(std::move(client));
  if (!socket) return;
  if (is_captured != where.has_value() || !has_room()) return reset_on_close(*socket);
  // Most clients have spoken by now: it is cheaper to try than to ask.
  socket->is_readable = true;
  switch (listener.kind) {
    case SocketKind::capture:
    case SocketKind::redirect:
      connections_.captured(std::move(socket), *Address::of(*where), port_of(*where));
      break;
    case SocketKind::proxy: connections_.proxied(std::move(socket)); break;
    case SocketKind::dns_streams: serve_dns_stream(std::move(socket)); break;
    case SocketKind::published:
      connections_.inbound(std::move(socket), listener.port, [this](wire::Family family) {
        return receive_inner_socket(inner_sockets_, family);
      });
      break;
    case SocketKind::dns_datagrams:
    case SocketKind::refusals:
    case SocketKind::inner_sockets: break;
  }
}

Task Broker::serve_dns_stream(SocketPtr client) {
  if (dns_streams_ >= most_dns_streams) co_return;
  ++dns_streams_;
  std::string bytes;
  const Time deadline = loop_.now() + std::chrono::seconds(policy_.limits.hello_seconds);
  for (bool goes_on = true; goes_on;) {
    std::array<char, 2 + most_dns_bytes> chunk;
    const ssize_t size = co_await read_some(loop_, *client, chunk, deadline);
    if (size <= 0) break;
    bytes.append(chunk.data(), static_cast<std::size_t>(size));
    while (goes_on && bytes.size() >= 2) {
      const auto length = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0]) << 8U |
                                                   static_cast<unsigned char>(bytes[1]));
      goes_on = length <= most_dns_bytes;
      if (!goes_on || bytes.size() < 2 + length) break;
      std::array<std::uint8_t, most_dns_bytes> answer;
      const Zone zone{policy_, names_, has_ipv6_};
      const DnsReply reply = answer_dns(
          {reinterpret_cast<const std::uint8_t*>(bytes.data()) + 2, length}, zone, answer);
      bytes.erase(0, 2 + length);
      journal_.tell_dns(reply);
      std::string framed = {static_cast<char>(reply.size >> 8U), static_cast<char>(reply.size)};
      framed.append(reinterpret_cast<const char*>(answer.data()), reply.size);
      goes_on = reply.size != 0 && co_await write_all(loop_, *client, framed, deadline) >= 0;
    }
  }
  --dns_streams_;
}

Task Broker::finish() {
  if (std::exchange(is_finishing_, true)) co_return;
  for (Socket* listener : std::exchange(listeners_, {})) loop_.cancel(*listener);
  while (connections_.live() > 0) {
    const Time later = loop_.now() + std::chrono::milliseconds(20);
    if (co_await loop_.sleep_until(later) == Woken::cancelled) co_return;
  }
  loop_.stop();
}

void Broker::end() {
  connections_.end_all();
  sockets_.clear();
  journal_.end();
}

}  // namespace capgate::egress
