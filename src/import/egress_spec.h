// What a server may reach, in a form that belongs to no engine: `capgate compile` writes it, and
// `capgate egress` serves it.
//
//   capgateEgress: 1
//   server: github
//   policyHash: sha256:...
//   rules:                             # what may be reached; nothing else
//     - connect: api.github.com:443    # HOST[:PORT], as in net:connect
//       blockPrivate: true             # informative, and must be what holds
//       methods: [GET]                 # refinements: sni, proto, methods, paths, private
//   listen: [8080]                     # net:listen, informative
//   publicOnly: false                  # assert:fetch.block_rfc1918
//
// The grammar of capabilities reads the hosts and the refinements, so there is one definition of
// them. An unknown key is an error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/manifest.h"
#include "text/document.h"

namespace capgate::imports {

struct EgressSpec {
  std::string server;
  std::string policy_hash;
  std::vector<core::Declared> declared;  // net:connect, net:listen, and what publicOnly asserts

  // The same as a manifest, for everything that takes one.
  [[nodiscard]] core::Manifest manifest() const;
};

// Its top level says `capgateEgress`; a manifest's does not.
[[nodiscard]] bool is_egress_spec(const text::Document& document);

[[nodiscard]] Checked<EgressSpec> read_egress_spec(const text::Document& document);

}  // namespace capgate::imports
