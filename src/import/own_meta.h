// A capgate manifest that somebody put into the `_meta` of another format:
//
//   "_meta": {"dev.capgate/permissions": {"schemaVersion": 1, "manifest": {"name": ..., ...}}}
//
// `capgate export --to mcpb-meta` writes it. Where it is there, it is taken as it is: nothing has
// to be assumed.
#pragma once

#include <string_view>

#include "import/imported.h"
#include "import/reading.h"
#include "text/document.h"

namespace capgate::imports {

inline constexpr std::string_view own_meta_key = "dev.capgate/permissions";

enum class OwnMeta : unsigned char { absent, taken };

// Looks into an object of `_meta`. Mistakes go to `in`.
[[nodiscard]] OwnMeta take_own_meta(text::Value meta, Reading& in, Collector& out);

}  // namespace capgate::imports
