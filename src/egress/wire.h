// What the supervisor and capgate-broker say to each other. Both sides are built from this file.
//
// The broker is started with the descriptors below and nothing else. It reads its policy,
// confines itself and answers with one Answer. Then it is handed the sockets that capgate-init made
// inside the sandbox's network namespace, in messages of one SocketKind per descriptor. It ends
// when the control socket does.
//
//   supervisor                                  broker
//     policy in policy_fd, audit file in audit_fd
//                                               Answer{ready}
//     Handover{count, kinds, ports} + SCM_RIGHTS
//     Handover{count = 0}                       takes no more connections, and exits 0 after the
//                                               last one
//     end of stream                             writes its last audit lines and exits 0
#pragma once

#include <cstddef>
#include <cstdint>

namespace capgate::egress::wire {

// Descriptors of the broker: 0 and 1 are /dev/null, 2 is the caller's stderr.
inline constexpr int control_fd = 3;  // SOCK_SEQPACKET
inline constexpr int audit_fd = 4;    // open for reading and appending, locked by the supervisor
inline constexpr int policy_fd = 5;   // JSON, see egress/policy.h
// Only where a secret is sealed, for capgate-broker-tls:
inline constexpr int secrets_fd = 6;  // a pipe, see secrets/handover.h
inline constexpr int renewal_fd =
    7;  // to the renewer (secrets/renewal.h); closed where none expires

enum class SocketKind : std::uint16_t {
  capture,        // TCP, listening inside: its own address is what the program asked for
  redirect,       // TCP, listening inside: SO_ORIGINAL_DST is what the program asked for
  proxy,          // TCP, listening inside: HTTP CONNECT, absolute-form HTTP and SOCKS5
  dns_datagrams,  // UDP 53 inside
  dns_streams,    // TCP 53 inside, listening
  refusals,       // raw, of IP protocol `port`: what tells of ports where nobody listens
  published,      // TCP, listening at the host's loopback; leads to `port` inside
  // SOCK_SEQPACKET to capgate-init: one byte of Family asks for a TCP socket. The byte comes back
  // with the socket, or alone where none could be made; a request beyond what fits is not answered.
  inner_sockets,
};

enum class Family : std::uint8_t { ipv4 = 4, ipv6 = 6 };

inline constexpr std::size_t most_sockets = 64;  // in one message

struct Handover {
  std::uint32_t count = 0;
  std::uint32_t ipv6 = 0;  // 1: the sandbox has IPv6
  SocketKind kinds[most_sockets] = {};
  std::uint16_t ports[most_sockets] = {};
};

struct Answer {
  enum class Kind : std::uint32_t { ready, failed };
  Kind kind = Kind::ready;
  char text[252] = {};  // why not, NUL-terminated
};

}  // namespace capgate::egress::wire
