// Exporting to an mcp.json of VS Code, whose sandbox is sandbox-runtime with fewer settings.
//
//   {"servers": {"github": {"sandboxEnabled": true}},
//    "sandbox": {"filesystem": {"allowWrite": [...], ...}, "network": {"allowedDomains": [...]}}}
//
// Its domains have no ports, and what can be read is a list of what cannot. The sandbox is one for
// all servers of the file. After the public schema; VS Code itself is not run by our tests.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"
#include "text/document.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> export_to_vscode(const Input& input, text::Value manifest);

inline constexpr Coverage vscode_coverage{
    .fs = partly("allowWrite; everything can be read but what denyRead lists"),
    .connect = partly("hosts without a port; not *, *.tld, names without a dot, nor requests"),
    .listen = not_kept("its network namespace cannot be reached; any port is free inside"),
    .exec = not_kept("every program can be started"),
    .env = not_kept("the server gets the environment of VS Code"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = not_kept("Linux: no Unix socket at all"),
    .clock = enforced("everything can be read"),
    .limit = not_kept("it limits no resource"),
    .assertion = enforced("carried as metadata of --json"),
};
inline constexpr std::string_view vscode_open[] = {"fs:read"};

}  // namespace capgate::lower
