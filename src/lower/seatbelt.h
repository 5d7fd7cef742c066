// Lowering to Seatbelt, the sandbox of macOS: server.sb and an argv for sandbox-exec, to which the
// command is added.
//
//   /usr/bin/env -i PATH=... /usr/bin/sandbox-exec -f server.sb -DFS_1=/w ... --
//
// With --script a launcher, launch.sh, takes the place of argv: it makes the private TMPDIR, checks
// the granted paths and reads the broker's token. No rule was tried on macOS; tests/support/sbpl.h
// reads and evaluates every profile as the documentation of others describes it.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_seatbelt(const Input& input);

inline constexpr Coverage seatbelt_coverage{
    .fs = enforced("rules by path; adding and removing apart"),
    .connect = enforced("by capgate egress, on a loopback port with a token"),
    .listen = enforced("bind and accept on localhost:PORT only"),
    .exec = partly("by path, with --program; code in memory is not limited"),
    .env = enforced("cleared; declared names on a descriptor"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = partly("Unix sockets by path; macOS has no bus and no fixed X socket"),
    .clock = enforced("rules by path"),
    .limit = partly("open files only"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
