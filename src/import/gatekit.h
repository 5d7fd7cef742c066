// Configurations of Gatekit: `proxy.upstreams`, each with a block `sandbox`
// (import/sandbox_block.h).
//
//   proxy:
//     upstreams:
//       - {name: notes, command: [notes-server], sandbox: {enabled: true, paths: [~/notes],
//       network: false}}
#pragma once

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_gatekit(const text::Document& document);
[[nodiscard]] Checked<Imported> read_gatekit(const text::Document& document,
                                             const ImportPlace& place);

}  // namespace capgate::imports
