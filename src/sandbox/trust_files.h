// Puts what programs inside must trust (trust.h) where they find it without being configured.
//
//   /etc/capgate/ca.pem      the host's roots and the anchor, also over every well-known bundle
//   /etc/capgate/anchor.pem  the anchor alone, for programs that add to roots of their own
//   /etc/capgate/cacerts     a Java key store, also over that of each JDK that can be seen
//
// And variables that name them, unless the manifest has a capability for the variable.
#pragma once

#include <expected>

#include "sandbox/parts.h"
#include "sandbox/trust.h"

namespace capgate::sandbox {

// After everything else of the tree. Refused where the manifest grants our own directory.
[[nodiscard]] std::expected<void, Refusal> place_trust(const Parts& parts, const Trust& trust);

}  // namespace capgate::sandbox
