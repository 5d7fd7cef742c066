// Exporting to the settings of sandbox-runtime: `srt --settings FILE COMMAND`.
//
//   {"network": {"allowedDomains": ["api.github.com:443"], ...},
//    "filesystem": {"denyRead": ["/", "/sys"], "allowRead": ["/usr", "/srv/data"], ...}}
//
// By itself srt lets everything be read. `/` in denyRead with allowRead turns that round, and makes
// every directory that is not listed an empty one of the sandbox's own, /tmp too. Found by running
// 0.0.83, as was the rest; tests/e2e/export_test.py runs it.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"
#include "text/document.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> export_to_srt(const Input& input, text::Value manifest);

inline constexpr Coverage srt_coverage{
    .fs =
        partly("denyRead /, allowRead, allowWrite; no entries for writing, nothing writable below "
               "what is only readable, nor adding without removing"),
    .connect = partly("host:port; not *, *.tld, names without a dot, nor requests"),
    .listen = not_kept("its network namespace cannot be reached; any port is free inside"),
    .exec = not_kept("every program that can be read can be started"),
    .env = not_kept("the caller's environment is passed on whole"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = not_kept("Linux: no Unix socket at all; macOS: by path"),
    .clock = enforced("allowRead"),
    .limit = not_kept("it limits no resource"),
    .assertion = enforced("carried as metadata of --json"),
};

}  // namespace capgate::lower
