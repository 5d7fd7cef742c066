// Lowering to podman: flags for `podman run FLAGS IMAGE COMMAND`, closed as printed.
//
//   --rm --cap-drop ALL --security-opt no-new-privileges ... --userns keep-id:uid=1000,gid=1000 ...
//
// For a podman without root, where the caller is the server's user inside; with --rootful for
// root's. Either refuses, or opens nothing, in the other's hands. Tried with podman 4.3 in
// tests/e2e.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_podman(const Input& input);

inline constexpr Coverage podman_coverage{
    .fs = partly("mounts; not single entries, nor adding without removing"),
    .connect = enforced("by capgate egress, through its socket"),
    .listen = not_kept("the container has no network of its own"),
    .exec = not_kept("every program of the image can be started"),
    .env = enforced("declared names only"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = enforced("bind of that socket; system call filter"),
    .clock = enforced("mounts"),
    .limit = partly("not time; disk for /tmp only; without root only with cgroups v2"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
