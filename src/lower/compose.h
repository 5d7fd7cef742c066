// Lowering to a compose file, closed as printed: the server's service has no network, and with
// declared egress a second service runs `capgate egress`. They share one directory in memory, with
// the broker's socket and the forwarder.
//
//   compose.yaml, seccomp.json, egress.json     docker compose run --rm -T server
//
// Tried with Docker Compose in tests/e2e. docs/adr/0030 says why there is no internal network.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_compose(const Input& input);

inline constexpr Coverage compose_coverage{
    .fs = partly("mounts; not single entries, nor adding without removing"),
    .connect = enforced("by capgate egress, as a second service"),
    .listen = not_kept("the container has no network of its own"),
    .exec = not_kept("every program of the image can be started"),
    .env = enforced("declared names only"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = enforced("bind of that socket; system call filter"),
    .clock = enforced("mounts"),
    .limit = partly("not time; disk for /tmp only"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
