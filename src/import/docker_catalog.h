// Entries of Docker MCP catalogs: a catalog with a `registry`, or one entry alone.
//
//   registry:
//     notes: {type: server, image: mcp/notes, volumes: ["{{notes.vault}}:/vault"],
//             secrets: [{name: notes.token, env: NOTES_TOKEN}], allowHosts:
//             ["api.example.com:443"]}
//
// {{notes.vault}} becomes ${NOTES_VAULT}. Without allowHosts and disableNetwork the container
// reaches everything there; the manifest grants no host, and says so.
#pragma once

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_docker_catalog(const text::Document& document);
[[nodiscard]] Checked<Imported> read_docker_catalog(const text::Document& document,
                                                    const ImportPlace& place);

}  // namespace capgate::imports
