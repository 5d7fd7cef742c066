#include "sandbox/network.h"

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "sandbox/egress_policy.h"
#include "sandbox/launch.h"
#include "sandbox/proxy_variables.h"

namespace capgate::sandbox {
namespace {

using egress::wire::SocketKind;

constexpr int backlog = 512;

std::unexpected<Refusal> refuse(std::string message, std::string help) {
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}

// The error is an errno.
std::expected<sys::Fd, int> listen_at(const sockaddr* address, socklen_t size) {
  sys::Fd fd(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return std::unexpected(errno);
  const int on = 1;
  const bool is_ipv6 = address->sa_family == AF_INET6;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      (is_ipv6 && ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0) ||
      ::bind(fd.get(), address, size) != 0 || ::listen(fd.get(), backlog) != 0) {
    return std::unexpected(errno);
  }
  return fd;
}

std::unexpected<Refusal> refuse_port(std::uint16_t port, int error) {
  std::string help = "see capgate doctor";
  if (error == EADDRINUSE) {
    help = format(
        "another program listens there (ss -ltnp 'sport = :{}' shows which): end it, or declare "
        "net:listen with another port",
        port);
  } else if (error == EACCES) {
    help = "ports below 1024 are root's: declare net:listen with another one";
  }
  return refuse(format("net:listen:{} cannot be published at this host's loopback: {}", port,
                       std::strerror(error)),
                std::move(help));
}

}  // namespace

std::expected<std::string, Refusal> random_run_name() {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    return refuse("no random numbers", "see capgate doctor");
  }
  return format("{:08x}", number);
}

std::expected<std::vector<PassedSocket>, Refusal> publish(const std::vector<std::uint16_t>& ports) {
  std::vector<PassedSocket> out;
  for (const std::uint16_t port : ports) {
    sockaddr_in ipv4{};
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(port);
    ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto first = listen_at(reinterpret_cast<const sockaddr*>(&ipv4), sizeof(ipv4));
    if (!first) return refuse_port(port, first.error());
    out.push_back({.fd = *std::move(first), .kind = SocketKind::published, .port = port});
    sockaddr_in6 ipv6{};
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(port);
    ipv6.sin6_addr = in6addr_loopback;
    auto second = listen_at(reinterpret_cast<const sockaddr*>(&ipv6), sizeof(ipv6));
    // A host without IPv6.
    if (!second && (second.error() == EAFNOSUPPORT || second.error() == EADDRNOTAVAIL)) continue;
    if (!second) return refuse_port(port, second.error());
    out.push_back({.fd = *std::move(second), .kind = SocketKind::published, .port = port});
  }
  return out;
}

std::expected<std::unique_ptr<Network>, Refusal> open_network(NetworkWanted wanted,
                                                              const Bound& bound) {
  const bool has_secrets = !wanted.secrets.seals.empty();
  sys::Fd program = TRY(find_broker(has_secrets ? tls_broker : plain_broker));
  const std::string sandbox = TRY(random_run_name());
  // Before the file: a port that is taken leaves no empty one behind.
  std::vector<PassedSocket> published = TRY(publish(wanted.plan.network.published));
  AuditFile audit = TRY(open_audit_file({.file = wanted.audit,
                                         .directory = wanted.audit_directory,
                                         .name = audit_name(wanted.plan.server, sandbox)},
                                        bound));
  egress::Policy policy =
      egress_policy(wanted.plan, {.sandbox = sandbox, .policy_hash = wanted.policy_hash});
  policy.limits = wanted.limits;
  policy.lacking = connects_of(wanted.lacking);
  policy.seals = std::move(wanted.secrets.seals);
  policy.roots_file = std::move(wanted.secrets.roots_file);
  policy.roots_directory = std::move(wanted.secrets.roots_directory);
  auto memory = sealed_file("capgate-policy", egress::print_policy(policy), false);
  if (!memory) return refuse("cannot make the broker's policy", std::strerror(memory.error()));

  secrets::Renewer& renewer = wanted.secrets.renewer;
  BrokerParts parts{.program = std::move(program),
                    .policy = *std::move(memory),
                    .audit = std::move(audit.fd),
                    .user = choose_broker_user(),
                    .secrets = std::move(wanted.secrets.handed),
                    .renewal = std::move(renewer.channel)};
  auto network = std::make_unique<Network>(std::move(parts), std::move(renewer));
  network->audit_path = std::move(audit.path);
  for (PassedSocket& socket : published) network->broker.add(std::move(socket));
  if (bound.capture.inner_sockets) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
      return refuse("cannot make a socket pair", std::strerror(errno));
    }
    network->inner = sys::Fd(pair[0]);
    network->broker.add({.fd = sys::Fd(pair[1]), .kind = SocketKind::inner_sockets});
  }
  if (auto started = network->broker.start(); !started) {
    return std::unexpected(std::move(started).error());
  }
  return network;
}

std::vector<std::string> proxy_variables(std::uint16_t port) {
  std::vector<std::string> out;
  for (const std::string_view name : proxy_names) {
    out.push_back(format("{}=http://127.0.0.1:{}", name, port));
  }
  for (const std::string_view name : no_proxy_names) {
    out.push_back(format("{}={}", name, no_proxy_places));
  }
  return out;
}

}  // namespace capgate::sandbox
