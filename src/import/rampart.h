// Rampart's `mcp` with a block `sandbox` (import/sandbox_block.h), for one server or for several.
//
//   mcp:
//     server: npx @modelcontextprotocol/server-github
//     sandbox: {network: [api.github.com:443], read: [~/notes], write: [], exec: false}
#pragma once

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_rampart(const text::Document& document);
[[nodiscard]] Checked<Imported> read_rampart(const text::Document& document,
                                             const ImportPlace& place);

}  // namespace capgate::imports
