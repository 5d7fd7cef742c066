// Lowering to docker: flags for `docker run FLAGS IMAGE COMMAND`, closed as printed.
//
//   --rm --cap-drop ALL --security-opt no-new-privileges ... --network none --user 1000:1000 ...
//
// With declared egress it is `docker run FLAGS IMAGE COMMAND_PREFIX COMMAND`: the forwarder is the
// entry point, and the artifact's commandPrefix its own words. Tried with Docker 20.10 in
// tests/e2e.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_docker(const Input& input);

inline constexpr Coverage docker_coverage{
    .fs = partly("mounts; not single entries, nor adding without removing"),
    .connect = enforced("by capgate egress, through its socket"),
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
