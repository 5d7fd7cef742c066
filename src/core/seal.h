// Sealed secrets of a whole manifest: sealing what is not sealed yet, and whether each seal is of
// use. A sealed variable is env:inject with to=: the server holds a placeholder, and connections to
// those endpoints are terminated by the broker, which puts the value into requests.
//
//   "capabilities": ["net:connect:api.github.com:443", "env:inject:GITHUB_TOKEN"]
//   seal_variables(manifest)  declares env:inject:GITHUB_TOKEN?to=api.github.com:443 instead
//
// That is what --seal and "seal": true do. Which endpoint is meant must be beyond doubt: the one
// host and port, with TLS, that the tools with this variable declare; if they declare none, the
// one of serverCapabilities, or else of the whole manifest. If another declaration seals the
// variable, what that one says holds.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "core/capability.h"
#include "core/manifest.h"

namespace capgate::core {

// True if TLS to `port` under such a rule can be terminated: its name is compared, it is not passed
// unread, and it is not plain HTTP, which would show the value to the network.
[[nodiscard]] bool is_terminable(const NetRefinements& rule, std::uint16_t port);

// Seals every env:inject of the manifest. Each variable where that cannot be done is a mistake, and
// then the manifest is as before.
[[nodiscard]] Diagnostics seal_variables(Manifest& manifest);

// Seals whose endpoint no net:connect reaches, or none under which TLS can be terminated. With
// `--tool` too it is the whole manifest that must make sense.
[[nodiscard]] Diagnostics check_seals(const Manifest& manifest);

}  // namespace capgate::core
