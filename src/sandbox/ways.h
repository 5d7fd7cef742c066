// How the host leads from / to a file: every component with its identity, every link on the way.
//
//   Ways ways;
//   for (const Way& way : ways.to("/home/me/.cursor/mcp.json")) ...
//
// Whoever can change one of these ways decides what the name stands for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/host_path.h"

namespace capgate::sandbox {

// One component of a path: what it is called in which directory, and what it is, if it is there.
struct Step {
  Identity directory;
  std::string name;
  std::string path;
  std::optional<Identity> identity;
  std::string rest = {};  // what would follow it, where it is not there: "/a/b"
};
using Way = std::vector<Step>;  // from the root, without links but for a last one

// The same file or directory, whoever owns it.
[[nodiscard]] inline bool is_same_file(const Identity& a, const Identity& b) {
  return a.device == b.device && a.inode == b.inode;
}

// Paths have most of their ways in common, so each component is looked at once.
class Ways {
 public:
  // Every way that is taken to the file: one for each link on it, and last the one to the file
  // itself, or to the first component that is not there.
  [[nodiscard]] std::vector<Way> to(const std::string& path);

  [[nodiscard]] std::optional<Identity> look(const std::string& path);

 private:
  std::map<std::string, std::optional<Identity>> seen_;
};

}  // namespace capgate::sandbox
