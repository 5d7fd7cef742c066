// Exporting to a permission profile of ToolHive, which runs servers in containers.
//
//   {"name": "github", "read": ["/srv/data"], "write": [], "privileged": false,
//    "network": {"outbound": {"insecure_allow_all": false,
//                             "allow_host": ["api.github.com"], "allow_port": [443]}}}
//
// Every host is open on every port of the list, so pairs are exact only if all hosts have the same
// ports. An empty list of ports means all of them, and an empty list of hosts beside ports all
// hosts. After the public schema and the rules that ToolHive writes for its proxy.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"
#include "text/document.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> export_to_toolhive(const Input& input, text::Value manifest);

inline constexpr Coverage toolhive_coverage{
    .fs = partly("mounts; not single entries, nothing hidden inside, nor adding without removing"),
    .connect = partly("HTTP by hosts x ports; not pairs, nor *.name without the name itself"),
    .listen = not_kept("a profile names no port of the server"),
    .exec = not_kept("every program of the image can be started"),
    .env = enforced("nothing of the host; thv run --env NAME=VALUE or --secret"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = partly("self; no socket of the host"),
    .clock = enforced("what the image brings"),
    .limit = not_kept("a profile limits no resource"),
    .assertion = enforced("carried as metadata of --json"),
};

}  // namespace capgate::lower
