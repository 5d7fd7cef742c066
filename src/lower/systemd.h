// Lowering to systemd: a socket, a service that is started for each connection to it, and the
// broker as a companion unit; closed as printed.
//
//   NAME.socket           the MCP client connects here; each connection is one server on stdio
//   NAME@.service         the server: an empty root with what is granted, no network
//   NAME-egress.service   with net:connect: `capgate egress`, and NAME-egress.yaml, what it allows
//   capgate-NAME.conf     for sysusers.d: the server's own user
//   NAME.hosts            its /etc/hosts
//
// Tried with systemd 252 in tests/e2e; docs/targets/systemd.md says how to install them, ADR 32 why
// they look like this.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_systemd(const Input& input);

inline constexpr Coverage systemd_coverage{
    .fs = partly("binds into an empty root; not single entries, nor adding without removing"),
    .connect = partly("by capgate egress, a unit of its own; methods and paths in plain HTTP only"),
    .listen = not_kept("the service has no network of its own"),
    .exec = enforced("only the server's and declared programs are executable"),
    .env = enforced("from the manager, or from a file that only root reads"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = enforced("bind of that socket; address families"),
    .clock = enforced("binds"),
    .limit = enforced("cgroup, rlimit, sizes of private places"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
