// What a server is now, held against what was approved of it: what run, approve and check --live
// have in common.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/load.h"
#include "cli/options.h"
#include "clients/approvals.h"
#include "clients/config_files.h"
#include "clients/pin.h"
#include "clients/pin_diff.h"
#include "clients/store.h"
#include "mcp/tools.h"

namespace capgate::cli {

inline constexpr Option locked_option{
    .name = "--locked",
    .value = "FILE",
    .help = "refuse what differs from this capgate.lock, or is not in it"};

// Under which directory the approval of an entry is kept (clients/approvals.h).
[[nodiscard]] std::string approval_scope(const clients::FoundServer& entry);

// A server that is to be approved or started.
struct Subject {
  std::string server;
  const Loaded& loaded;
  std::vector<std::string> command;  // what runs; empty: not known
  // Of a ready manifest, whose text depends on what the caller has in his environment: the text
  // before that. Else empty.
  std::string catalog_text = {};
  // The package of the command, if it was looked up before.
  std::optional<clients::LockedPackage> package = {};
};

// All but its tools. A package that is not installed is a problem, which is said.
// So is a command that a file of JSON cannot hold as it is.
[[nodiscard]] std::expected<clients::Pin, int> pin_of(const Subject& subject, Output& output);

// As a pin has them. One that cannot be read as JSON has none of its schemas.
[[nodiscard]] std::vector<clients::PinnedTool> pinned_tools(
    const std::vector<mcp::ToolInfo>& tools);

// The difference that counts. Tools that were not asked for, then or now, are none, nor is a
// command that one of them does not have, nor a package where one has neither. Of a ready manifest
// that is the same one, less is no difference: what is optional in it comes and goes with the
// environment.
[[nodiscard]] clients::PinDiff difference(const clients::Pin& approved, const clients::Pin& now,
                                          const Subject& subject);

enum class LockFile : bool { may_lack, must_exist };

// The server's pin in a lock, if it is there. A lock that may lack has none; what is wrong with one
// is said.
[[nodiscard]] std::expected<std::optional<clients::Pin>, int> find_locked_pin(
    const std::string& file, std::string_view server, LockFile lock, Output& output);

// Of an entry of a project: the capgate.lock beside its file.
[[nodiscard]] std::string lock_beside(const std::string& config_file);

}  // namespace capgate::cli
