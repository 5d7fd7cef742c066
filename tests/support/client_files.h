// Wrapping and unwrapping all servers of a client's file, for tests and fuzzing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clients/client_file.h"

namespace capgate::support {

using clients::Change;
using clients::ClientFile;
using clients::ServerEntry;

[[nodiscard]] inline std::vector<std::string> wrapper(std::string_view profile) {
  return {"/usr/bin/capgate", "run", "--profile", std::string(profile), "--"};
}

[[nodiscard]] inline bool can_be_wrapped(const ServerEntry& server) {
  return server.transport == clients::Transport::stdio && server.problem.empty() &&
         server.profile.empty();
}

// Of every server that can be; its profile is its place among them.
[[nodiscard]] inline std::vector<Change> wrap_changes(const ClientFile& file) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < file.servers.size(); ++i) {
    if (!can_be_wrapped(file.servers[i])) continue;
    changes.push_back(
        {.kind = Change::Kind::wrap, .server = i, .prefix = wrapper("p" + std::to_string(i))});
  }
  return changes;
}

// The same servers, back.
[[nodiscard]] inline std::vector<Change> undone(std::vector<Change> changes) {
  for (Change& change : changes) {
    change.kind = Change::Kind::unwrap;
  }
  return changes;
}

}  // namespace capgate::support
