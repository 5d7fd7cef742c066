// Lowering to Landlock: flags for landrun, which restricts itself and then becomes the server.
//
//   landrun --rox /usr --ro /srv/data --rw /srv/work --connect-tcp 443 --env TOKEN -- COMMAND
//
// A partial target: Landlock decides which files are opened and which TCP ports are used, for a
// process that otherwise stays on the host. Rules only add: nothing inside a grant can be hidden.
// The flags are those of landrun 0.1; without --best-effort it refuses to start on a kernel that
// does not know them all (6.10 and later do).
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_landlock(const Input& input);

inline constexpr Coverage landlock_coverage{
    .fs = partly("rules by path; no private /tmp, no single entries, nothing hidden inside"),
    .connect = partly("TCP by port, to every host; UDP stays open"),
    .listen = partly("TCP by port, on every address"),
    .exec = partly("with --program; what can be read can be started by the dynamic loader"),
    .env = enforced("declared names only"),
    .sealed = not_kept("only capgate's own broker keeps the value; the name is not passed on"),
    .ipc = not_kept("Landlock does not look at Unix sockets"),
    .clock = enforced("rule by path"),
    .limit = not_kept(),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
