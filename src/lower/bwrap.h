// Lowering to bubblewrap: an argv for execFile("bwrap", argv + command), closed as printed.
//
//   --unshare-user ... --ro-bind /usr /usr ... --bind /workspace /workspace ... --seccomp 3 --
//
// With declared egress it ends in the forwarder (lower/forwarder.h), which starts the command.
// bwrap applies mounts from left to right and the last one wins; the groups below are in that
// order. Tried with bubblewrap 0.8.0 in tests/e2e.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_bwrap(const Input& input);

inline constexpr Coverage bwrap_coverage{
    .fs = partly("mounts; not single entries, nor adding without removing"),
    .connect = enforced("by capgate egress, through its socket"),
    .listen = not_kept("its network namespace cannot be reached"),
    .exec = partly("other programs are hidden, with --program; code in memory is not limited"),
    .env = enforced("cleared; declared names on a descriptor"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = enforced("bind of that socket; system call filter"),
    .clock = enforced("mounts"),
    .limit = partly("disk only"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
