// What a program means by an address of its own loopback.
#pragma once

#include <cstdint>

#include "egress/decide.h"

namespace capgate::egress {

// localhost where the address is one of its two and a rule lets the program reach it by name, else
// the address. Other hosts are themselves.
[[nodiscard]] core::HostPattern host_meant(const Policy& policy, const core::HostPattern& host,
                                           std::uint16_t port);

}  // namespace capgate::egress
