// The entry of a project's ./capgate.yaml, held against the user's own: it narrows what that
// grants, or a person approves it first.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/entry.h"
#include "cli/options.h"

namespace capgate::cli {

struct ProjectEntry {
  // With what the project leaves to the user's entry: command, variables, secrets, limits.
  clients::FoundServer entry;
  Loaded loaded;
  std::vector<std::string>
      beyond;        // what it says that the user's entry does not; empty: it narrows
  std::string hash;  // of everything that decides, for the approval
  std::string directory;
  std::string manifest_text;  // of the manifest that it names, or empty
  // The user's own entry that it is measured by, if there is one.
  std::optional<LoadedEntry> base;
};

// `found` is what find_entries gave, the project's first. `command` is what runs in place of the
// entry's own, or empty.
[[nodiscard]] std::expected<ProjectEntry, int> review_project(
    const Arguments& arguments, const std::vector<clients::FoundServer>& found,
    const std::vector<std::string>& command, Output& output);

// $XDG_STATE_HOME/capgate/approved
[[nodiscard]] std::string approvals_directory();

}  // namespace capgate::cli
