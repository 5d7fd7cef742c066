#include "egress/loopback.h"

#include <utility>

namespace capgate::egress {

core::HostPattern host_meant(const Policy& policy, const core::HostPattern& host,
                             std::uint16_t port) {
  if (!core::is_localhost_address(host)) return host;
  auto localhost = core::parse_host("localhost");
  if (localhost && decide(policy, {.host = *localhost, .port = port}).is_allowed()) {
    return *std::move(localhost);
  }
  return host;
}

}  // namespace capgate::egress
