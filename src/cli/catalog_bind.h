// capgate catalog bind: what a command line makes of an entry.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "clients/catalog.h"

namespace capgate::cli {

// Binds the entry's variables from these words, the caller's environment and directory.
[[nodiscard]] int bind_entry(const clients::CatalogEntry& entry, std::vector<std::string> words,
                             bool as_json, Output& output);

}  // namespace capgate::cli
