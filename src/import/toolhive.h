// ToolHive permission profiles.
//
//   {"name": "github", "read": ["/srv/data"], "write": ["/srv/out:/out"],
//    "network": {"outbound": {"allow_host": [".github.com"], "allow_port": [443]}}}
//
// Hosts and ports are two lists there, and every pair is allowed: all pairs are written. ".name" is
// the name and everything below it. Ports without hosts are every host. Empty lists allow nothing.
#pragma once

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_toolhive(const text::Document& document);
[[nodiscard]] Checked<Imported> read_toolhive(const text::Document& document,
                                              const ImportPlace& place);
// A profile that is a part of another document.
[[nodiscard]] Checked<Imported> read_toolhive_profile(text::Value profile,
                                                      const ImportPlace& place);

}  // namespace capgate::imports
