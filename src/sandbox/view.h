// What a server would see at a path of its own: the mounts of a bound plan as the kernel stacks
// them, with links followed as it follows them, and what Landlock adds up to there.
//
//   View view(bound);
//   const Seen seen = view.look("/bin/sh");
//   seen.path          /usr/bin/sh
//   seen.mount->kind   cover: nothing is there
//   view.access("/usr/bin/sh") & landlock_access({"read_file"}, abi)
//
// Looks at the host's files where they are mounted; opens none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox/bind.h"

namespace capgate::sandbox {

struct Seen {
  std::string path;                   // without links
  const BoundMount* mount = nullptr;  // the last one at or above it; none: the empty root
  std::string host;                   // what it is on the host, where it is the host's; else empty
  bool exists = false;
  bool is_directory = false;
  bool is_read_only = false;
  bool loops = false;  // links that lead nowhere
};

class View {
 public:
  explicit View(const Bound& bound) : bound_(bound) {}

  [[nodiscard]] Seen look(const std::string& path) const;
  // The rights of every rule at or above the path.
  [[nodiscard]] std::uint64_t access(std::string_view path) const;

 private:
  [[nodiscard]] Seen look_at(const std::string& path) const;
  // Where a link leads; empty if there is none.
  [[nodiscard]] std::string link_at(const Seen& seen) const;

  const Bound& bound_;
};

}  // namespace capgate::sandbox
