// Lowering to an OCI bundle: config.json of the runtime specification 1.0.2, for runc, crun and
// whatever else starts bundles. `crun run NAME` in a directory that holds it and a `rootfs`.
//
//   "process": {"user": {"uid": 0, ...}, "args": [...], "capabilities": {"bounding": [], ...} ...
//
// The rootfs brings the programs, as an image does for docker. Root inside is the ordinary user of
// --user outside, and has no capability: the same bundle runs for that user and for root. Tried
// with runc 1.1 and crun 1.8 in tests/e2e.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_oci(const Input& input);

inline constexpr Coverage oci_coverage{
    .fs = partly("mounts; not single entries, nor adding without removing"),
    .connect = enforced("by capgate egress, through its socket"),
    .listen = not_kept("the container has no network of its own"),
    .exec = not_kept("every program of the rootfs can be started"),
    .env = not_kept("config.json holds values, which only the launch knows"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = partly("bind of that socket, system call filter; not x11, whose DISPLAY is a value"),
    .clock = enforced("mounts"),
    .limit = partly("not time; disk for /tmp only"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
