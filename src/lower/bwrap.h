// Lowering to bubblewrap: an argv for execFile("bwrap", argv + command), closed as printed.
//
//   --unshare-user ... --ro-bind /usr /usr ... --bind /workspace /workspace ... --seccomp 3 --
//
// bwrap applies mounts from left to right and the last one wins; the groups below are in that
// order. Tried with bubblewrap 0.8.0 in tests/e2e.
#pragma once

#include "lower/artifact.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_bwrap(const Input& input);

}  // namespace capgate::lower
