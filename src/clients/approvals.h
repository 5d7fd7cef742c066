// What a person approved of a server: one file for each, in the user's own state directory, where
// no server can write.
//
//   $XDG_STATE_HOME/capgate/approved/SHA256-OF-DIRECTORY-AND-NAME.json      0600
//   {"schemaVersion": 2, "directory": "/home/me/project", "server": "github",
//    "hash": "sha256:...", "date": "2026-11-15T12:00:00Z", "policy": ["fs:write:/srv/**"],
//    "pin": {...}}
//
// The hash is over everything that a project's entry decides: a changed entry, manifest, variable
// or command is another one, and is asked for again. The pin (pin.h) is what `run` and `check
// --live` compare; files of schemaVersion 1 have none.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/config.h"
#include "clients/pin.h"

namespace capgate::clients {

struct Approval {
  // Of the project, without links; the file of --config; empty for the user's own and the system's.
  std::string directory;
  std::string server;
  std::string hash;                 // approval_hash
  std::vector<std::string> policy;  // as it was shown
  std::string date;
  std::optional<Pin> pin = {};

  bool operator==(const Approval&) const = default;
};

// `manifest_text` is that of the manifest that the entry names, or empty.
[[nodiscard]] std::string approval_hash(const ServerConfig& server, std::string_view directory,
                                        std::string_view manifest_text);

// A directory of approvals: $XDG_STATE_HOME/capgate/approved.
class Approvals {
 public:
  explicit Approvals(std::string base) : base_(std::move(base)) {}

  [[nodiscard]] std::string file_of(std::string_view directory, std::string_view server) const;

  // Errors are in words, with the file's name.
  using Problem = std::string;
  [[nodiscard]] std::expected<std::optional<Approval>, Problem> find(std::string_view directory,
                                                                     std::string_view server) const;
  [[nodiscard]] std::expected<void, Problem> keep(const Approval& approval) const;
  [[nodiscard]] std::expected<std::vector<Approval>, Problem> all() const;  // sorted
  // False: there was none.
  [[nodiscard]] std::expected<bool, Problem> revoke(std::string_view directory,
                                                    std::string_view server) const;

  // The state of a package's files (mark_tree) in which all of them were found to be right. It is
  // kept here since no server can write here; who has none reads the files again.
  [[nodiscard]] std::string mark_of(std::string_view tree) const;  // empty: none
  void keep_mark(std::string_view tree, std::string_view mark) const;

 private:
  std::string base_;
};

}  // namespace capgate::clients
