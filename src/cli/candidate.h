// A server that a person is asked about: an entry of capgate.yaml, or a manifest with a command.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/entry.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/pins.h"
#include "clients/approvals.h"

namespace capgate::cli {

struct Candidate {
  std::string server;
  std::string file;   // where its entry stands, or its manifest
  std::string scope;  // approval_scope
  bool is_of_project = false;
  Loaded loaded = {};
  std::vector<std::string> command = {};
  std::string catalog_text = {};
  std::string hash = {};  // approval_hash; empty: a manifest alone, which has no approval
  std::vector<std::string> notes = {};   // of the entry
  std::vector<std::string> beyond = {};  // of a project's entry: what is beyond the user's own
  // Of a project's entry that narrows: the one that it narrows, with its policy.
  std::optional<clients::FoundServer> base_entry = {};
  std::optional<LoadedEntry> base = {};

  [[nodiscard]] bool has_entry() const { return !hash.empty(); }
  [[nodiscard]] Subject subject() const {
    return {.server = server, .loaded = loaded, .command = command, .catalog_text = catalog_text};
  }
  // What the user's own entry is with this command; only where there is a base.
  [[nodiscard]] Subject base_subject() const {
    return {.server = server,
            .loaded = base->loaded,
            .command = command,
            .catalog_text = cli::catalog_text(*base_entry, base->manifest_text)};
  }
};

// The entry of that name; `command` replaces its own if it is not empty. On failure everything is
// said in `output`, and the exit code is the error.
[[nodiscard]] std::expected<Candidate, int> candidate_of_entry(
    const std::string& name, const std::vector<std::string>& command, const Arguments& arguments,
    Output& output);

// A manifest that a file holds.
[[nodiscard]] std::expected<Candidate, int> candidate_of_manifest(
    const std::string& name, const std::string& file, const std::vector<std::string>& command,
    const Arguments& arguments, Output& output);

// The pin with the tools that the server lists now. One that lists others when it is asked again is
// a refusal.
[[nodiscard]] std::expected<clients::Pin, int> live_pin(const Candidate& candidate,
                                                        const Arguments& arguments, Output& output);

}  // namespace capgate::cli
