// The system call filter alone, for a sandbox that somebody else builds.
//
//   seccomp.json   docker run --security-opt seccomp=seccomp.json, podman, Kubernetes, containerd
//   seccomp.bpf    struct sock_filter, for prctl(PR_SET_SECCOMP), bwrap --seccomp, systemd ...
//
// A partial target: a filter sees numbers, never paths, hosts or names. What it keeps is that there
// are no child processes without exec capabilities, and no Unix sockets without ipc ones.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_seccomp(const Input& input);

inline constexpr Coverage seccomp_coverage{
    .fs = not_kept("a filter sees no paths"),
    .connect = not_kept("a filter sees no addresses"),
    .listen = not_kept("a filter sees no addresses"),
    .exec = partly("no child process without exec; not which program"),
    .env = not_kept(),
    .sealed = not_kept(),
    .ipc = partly("no Unix or netlink socket without ipc; not which one"),
    .clock = not_kept("a filter sees no paths"),
    .limit = not_kept(),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
