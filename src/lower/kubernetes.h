// Lowering to Kubernetes: a Deployment that the Pod Security level "restricted" accepts, policies
// that deny every connection but those to the broker, and the broker as a Deployment of its own.
//
//   mcp-NAME.yaml            all objects, for kubectl apply
//   capgate-mcp-NAME.json    the system call filter, for the nodes
//
// The broker is no side container: all containers of a pod share one network, so the server would
// reach whatever the broker may reach (ADR 32). docs/targets/kubernetes.md says how to use them.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_kubernetes(const Input& input);

inline constexpr Coverage kubernetes_coverage{
    .fs = partly("persistent volume claims; not single entries, nor adding without removing"),
    .connect =
        partly("by capgate egress in a pod of its own; methods and paths in plain HTTP only, "
               "no localhost"),
    .listen = not_kept("nobody may connect to the pod"),
    .exec = not_kept("every program of the image can be started"),
    .env = enforced("by reference to a Secret or a ConfigMap"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = partly("self and netlink-route; a pod has no sockets of a host"),
    .clock = enforced("what the image brings"),
    .limit = partly("memory, cpu, and disk for /tmp; not pids, files, time"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
