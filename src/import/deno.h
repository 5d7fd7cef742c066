// Permissions of Deno: the flags of a command, and the sets of deno.json.
//
//   deno run --allow-net=api.github.com:443 --allow-read=/srv/data --deny-env main.ts
//   {"permissions": {"default": {"net": ["api.github.com:443"], "read": {"allow": ["./data"]}}}}
//
// Denies win there; here they are weighed (import/rules.h). All rights (-A) are no manifest.
#pragma once

#include <string_view>

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_deno(const text::Document& document);
// --server names the set; without it, the only one or the one called default.
[[nodiscard]] Checked<Imported> read_deno(const text::Document& document, const ImportPlace& place);

// A command as a shell reads it: words, quotes and backslashes, nothing expanded; or the first line
// of a script ("#!/usr/bin/env -S deno run ...").
[[nodiscard]] bool is_deno_command(std::string_view text);
[[nodiscard]] Checked<Imported> read_deno_command(std::string_view text, const ImportPlace& place);

}  // namespace capgate::imports
