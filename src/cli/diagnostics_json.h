// Diagnostics for programs.
//
//   {"diagnostics": [{"code": "CAP_FS_RELATIVE", "file": "m.json", "line": 3, "column": 9, ...}]}
#pragma once

#include <string>

#include "base/render.h"
#include "base/result.h"

namespace capgate::cli {

[[nodiscard]] std::string diagnostics_json(const Diagnostics& diagnostics, const Source& source);

}  // namespace capgate::cli
