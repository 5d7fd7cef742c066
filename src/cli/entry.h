// An entry of capgate.yaml becomes a policy: what run, approve and explain have in common.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "cli/load.h"
#include "cli/options.h"
#include "clients/config_files.h"

namespace capgate::cli {

// Where the caller's configs lie; --config of `arguments` is the flag's.
[[nodiscard]] clients::Places config_places(const Arguments& arguments);

// Says what is wrong with a config, and returns the exit code.
int report(const clients::ConfigProblem& problem, const Arguments& arguments, Output& output);

// Every entry of that name; what is wrong with one of the files is said.
[[nodiscard]] std::expected<std::vector<clients::FoundServer>, int> find_entries(
    std::string_view name, const Arguments& arguments, Output& output);

struct LoadedEntry {
  Loaded loaded;
  std::string manifest_text;  // of the manifest that the entry names, or empty
};

// `command` is what is going to run: a manifest of the catalog is for its packages alone. Empty:
// not known, and not checked.
[[nodiscard]] std::expected<LoadedEntry, int> load_entry(const Arguments& arguments,
                                                         const clients::FoundServer& entry,
                                                         const std::vector<std::string>& command,
                                                         Output& output);

// Of a ready manifest, whose text depends on the caller's environment: the text before that. Else
// empty.
[[nodiscard]] std::string catalog_text(const clients::FoundServer& entry,
                                       const std::string& manifest_text);

}  // namespace capgate::cli
