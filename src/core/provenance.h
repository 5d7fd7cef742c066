// Hashes that say which manifest and which policy an artifact comes from.
//
// manifestHash is SHA-256 over the RFC 8785 form of name, serverCapabilities, tools (name and
// capabilities only) and version, and seal where it is true: the same document gives the same hash
// as in the earlier implementation. policyHash (core/policy.h) covers what is granted, and nothing
// else.
#pragma once

#include <string>

#include "text/document.h"

namespace capgate::core {

// `root` has the shape of a manifest.
[[nodiscard]] std::string manifest_hash(text::Value root);

}  // namespace capgate::core
