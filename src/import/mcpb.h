// manifest.json of an MCPB bundle (once DXT), versions 0.1 to 0.4.
//
//   {"manifest_version": "0.3", "name": "notes", "version": "1.0.0",
//    "server": {"type": "node", "entry_point": "index.js",
//               "mcp_config": {"command": "node", "args": ["${__dirname}/index.js"],
//                              "env": {"TOKEN": "${user_config.token}"}}},
//    "user_config": {"token": {"type": "string", "sensitive": true, ...}}}
//     -> fs:read:${BUNDLE}/**, env:inject:TOKEN
//
// The format knows no permissions. What it shows of them is taken with the least right that fits:
//   a directory or file that the user chooses and the server gets   fs:read:${NAME}
//   a sensitive option in a variable of the environment             env:inject
//   any other variable of the environment                           env:read
// A capgate manifest in `_meta` (import/own_meta.h) is taken instead of all that.
#pragma once

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_mcpb(const text::Document& document);
[[nodiscard]] Checked<Imported> read_mcpb(const text::Document& document, const ImportPlace& place);

}  // namespace capgate::imports
