// Lowering to rules of egress alone, for programs that already stand in the way: one file of the
// chosen kind (--egress-target), closed as printed and never host-wide.
//
//   spec       capgate-egress.yaml        what `capgate egress` reads
//   (docs/egress-spec.schema.json) squid      capgate-egress.squid.conf  a whole configuration, on
//   loopback nftables   capgate-egress-nft.sh      loads its table into one other network namespace
//   envoy      capgate-egress.envoy.yaml  a static bootstrap, on loopback
//   mitmproxy  capgate_egress.py          an addon, for development
//
// It is part of a sandbox: whatever is not net or assert stands in notCovered.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_egress(const Input& input);

inline constexpr Coverage egress_coverage{
    .fs = not_kept("only egress"),
    .connect = partly("spec: requests in plain HTTP; mitmproxy whole; squid: not inside TLS; "
                      "nftables: addresses; envoy: addresses, names if accepted"),
    .listen = partly("spec and nftables"),
    .exec = not_kept("only egress"),
    .env = not_kept("only egress"),
    .sealed = not_kept("only egress"),
    .ipc = not_kept("only egress"),
    .clock = not_kept("only egress"),
    .limit = not_kept("only egress"),
    .assertion = enforced("fetch.block_rfc1918; others carried as metadata"),
};

}  // namespace capgate::lower
