// What is watched in granted directories while the server runs: who appears there under a name that
// matters, and which of the entries that are hidden or read-only the host replaces. The guard fills
// it in (guard.h), and the keeper acts on it (keeper.h).
//
// The watches begin before the directories are looked at, so that nothing is missed in between.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sandbox/held_names.h"
#include "sys/fd.h"

namespace capgate::sandbox {

struct WatchedDirectory {
  std::string path;
  std::string root;  // of the grant that it lies in
  HeldNames::Role role = HeldNames::none;
  bool writable = false;
  bool is_hooks = false;  // of git: every program in it counts
  bool is_new = false;    // made while the server runs: there only git's own names count
};

// An entry that init hides or mounts read-only.
struct HeldEntry {
  std::string root;
  bool is_hidden = false;
};

struct Watched {
  Watched() : names({}, {}) {}

  [[nodiscard]] bool is_needed() const { return !directories.empty(); }
  // `directory` must be a name that leads nowhere else by now: of a descriptor, or ".". An errno
  // where it cannot be watched.
  [[nodiscard]] std::optional<int> watch(const char* directory, WatchedDirectory what);

  HeldNames names;
  sys::Fd events;
  std::map<int, WatchedDirectory> directories;  // by their watches
  std::map<std::string, HeldEntry, std::less<>> held;
  // Entries that were there from the start and could not be held, such as links.
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>, std::less<>>
      left;                                    // device, inode
  std::set<std::string, std::less<>> granted;  // named in a grant of their own
  std::string problem;                         // why not everything that must be is watched
};

}  // namespace capgate::sandbox
