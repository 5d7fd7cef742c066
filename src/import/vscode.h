// Servers of VS Code with its sandbox: .vscode/mcp.json, or `mcp` in settings.json.
//
//   {"servers": {"notes": {"command": "notes-server", "sandboxEnabled": true}},
//    "sandbox": {"filesystem": {"allowWrite": ["${workspaceFolder}/notes"]},
//                "network": {"allowedDomains": ["api.example.com"]}}}
//
// The sandbox is one for the whole file and has the keys of srt (import/srt.h). Its variables
// become ones of the manifest: ${workspaceFolder} -> ${WORKSPACE_FOLDER}.
#pragma once

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_vscode(const text::Document& document);
[[nodiscard]] Checked<Imported> read_vscode(const text::Document& document,
                                            const ImportPlace& place);

}  // namespace capgate::imports
