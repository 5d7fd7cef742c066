// Lowering to an AppArmor profile: load it with `apparmor_parser -r FILE`, then start the server
// with `aa-exec -p capgate-NAME -- COMMAND`. Everything that no rule allows is denied.
//
//   "/srv/data/**" r,
//   deny "/srv/data/.ssh/**" rwklmx,
//
// A partial target: a profile decides about files, programs, socket families and signals, by name
// and for a process that otherwise stays on the host. It knows no hosts, no ports and no variables.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_apparmor(const Input& input);

inline constexpr Coverage apparmor_coverage{
    .fs = partly("rules by path; no private /tmp, nor adding without removing"),
    .connect = partly("no network without it; every host with it"),
    .listen = partly("no network without it; every port with it"),
    .exec = enforced("rules for /usr/bin/NAME or --program; others are denied"),
    .env = not_kept("the launcher must clear the environment"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = enforced("rules for that socket; none without"),
    .clock = enforced("rules by path"),
    .limit = partly("files only"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
