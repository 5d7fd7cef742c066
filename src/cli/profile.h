// The policy of a run: what the flags say, or the entry of capgate.yaml that --profile names.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/entry.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/secret_options.h"
#include "clients/store.h"
#include "sandbox/policy_place.h"

namespace capgate::cli {

inline constexpr Option config_option{
    .name = "--config",
    .value = "FILE",
    .help = "a capgate.yaml whose entry --profile means, before all others"};

struct ChosenPolicy {
  Loaded loaded;
  std::vector<std::string> command;  // the operands, or the entry's
  std::string server = {};           // the entry's name: its secrets in the store; empty: no entry
  ConfiguredSecrets secrets = {};
  std::vector<sandbox::PolicyPlace> places = {};  // what decided, but for what policy_places.h has
  std::string catalog_text = {};                  // Subject::catalog_text
  std::optional<clients::FoundServer> entry = {};
  // Of a project's entry that narrows: the one that it narrows, with its policy.
  std::optional<clients::FoundServer> base_entry = {};
  std::optional<LoadedEntry> base = {};
  // Of the command, if it was compared with what was approved: what is started then.
  std::optional<clients::LockedPackage> package = {};
};

// A project's entry narrows; an HTTP server and one without a sandbox do not run here.
[[nodiscard]] std::expected<void, int> check_may_run(const clients::FoundServer& entry,
                                                     Output& output);

// Without --profile no config has a say. On failure everything is said in `output`, and the exit
// code is the error.
[[nodiscard]] std::expected<ChosenPolicy, int> choose_policy(const Arguments& arguments,
                                                             Output& output);

}  // namespace capgate::cli
