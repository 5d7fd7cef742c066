// server.json of the MCP registry, schemas 2025-09-16 to 2025-12-11.
//
//   {"$schema": ".../schemas/2025-12-11/server.schema.json", "name": "io.github.me/notes",
//    "version": "1.0.0",
//    "packages": [{"registryType": "npm", "identifier": "@me/notes", "version": "1.0.0",
//                  "transport": {"type": "stdio"},
//                  "environmentVariables": [{"name": "NOTES_TOKEN", "isSecret": true}]}]}
//     -> env:inject:NOTES_TOKEN, and how it is started
//
// An entry with several packages needs ImportPlace::server: the type of a package ("npm") or its
// identifier. The format knows no permissions; a capgate manifest in `_meta`, also in what the
// publisher provides there, is taken instead of assumptions.
#pragma once

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_server_json(const text::Document& document);
[[nodiscard]] Checked<Imported> read_server_json(const text::Document& document,
                                                 const ImportPlace& place);

}  // namespace capgate::imports
