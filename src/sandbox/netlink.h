// Netlink messages as bytes, ready to be sent: what `ip route add local` and `nft` would send.
//
//   local_route(Family::ipv4)                          local 0.0.0.0/0 dev lo table local
//   redirect({Family::ipv4, {443, 5432}, 61000})       to those ports: to port 61000 instead
//
// Only capgate-init sends them, in the sandbox's own network namespace. The last message of each
// asks for an acknowledgement; errors of earlier ones are told without being asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "egress/wire.h"

namespace capgate::sandbox {

// Every address is this host's own (AnyIP): a listener at a port hears whoever is asked for.
[[nodiscard]] std::string local_route(egress::wire::Family family);

struct Redirect {
  egress::wire::Family family = egress::wire::Family::ipv4;
  std::vector<std::uint16_t> ports;  // empty: every one, but that of DNS
  std::uint16_t to = 0;
};
// TCP to these ports of anything but the loopback. One table "capgate" with one chain.
[[nodiscard]] std::string redirect(const Redirect& wanted);

}  // namespace capgate::sandbox
