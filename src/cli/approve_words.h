// The command that approves what another one was given: for help lines, quoted for a shell.
//
//   approve_words({.server = "notes", .manifest = "notes.json", .lock = "capgate.lock"}, arguments)
//     -> "capgate approve notes -m notes.json --lock capgate.lock"
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace capgate::cli {

struct ApproveWords {
  std::string server;
  std::string manifest = {};              // -m; empty: an entry of capgate.yaml
  std::string lock = {};                  // --lock; empty: the user's own record
  std::vector<std::string> command = {};  // after --; empty: the entry's own
  bool is_live = false;                   // --allow and --timeout are those of asking the server
  bool is_answered = false;               // --yes
};

// With --config, --set and --no-tools as they were given.
[[nodiscard]] std::string approve_words(const ApproveWords& words, const Arguments& arguments);

}  // namespace capgate::cli
