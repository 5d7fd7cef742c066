// Lowering to a Worker of Node (22 or later): its options in worker.json, and worker.mjs, which
// starts the server's module with them.
//
//   node worker.mjs /srv/server/index.mjs ARGUMENTS...
//
// It is a part of a sandbox: Node limits what the Worker's code may do through Node, not what the
// process may do. Tried with a real Node in tests/e2e/worker_target_test.py.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_worker(const Input& input);

inline constexpr Coverage worker_coverage{
    .fs = partly("permission flags; links inside a grant are followed out of it"),
    .connect = not_kept("Node 22 does not limit the network"),
    .listen = not_kept("Node 22 does not limit the network"),
    .exec = not_kept("no child process can be started at all"),
    .env = enforced("the Worker's own environment"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = not_kept("Node 22 does not limit sockets"),
    .clock = not_kept("every thread reads the clock"),
    .limit = partly("memory, of the heap"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
