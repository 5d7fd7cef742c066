// What stays as it is, or out of sight, inside a granted directory: files that a program of the
// host runs later, credentials, secrets of a workspace.
//
// Every ancestor of such a path, up to the root of the grant, becomes a mount of its own, so that
// it cannot be renamed away from inside. Nothing is made on the host. The directories of a grant
// are walked as far as a fixed number goes, so that the cost does not grow with the tree; what lies
// deeper is told as not held. Each directory that was looked at is watched from before the look.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox/parts.h"
#include "sandbox/watched.h"

namespace capgate::sandbox {

class Guard {
 public:
  explicit Guard(const Parts& parts);

  // Call when the grant is mounted, or one above it that gives as much.
  void keep_safe(const std::string& path, const Grant& grant);

 private:
  struct Directory {
    std::string path;
    HeldNames::Role role;
  };
  struct Entry {
    std::string name;
    bool is_directory = false;
  };
  // A walk through one grant.
  struct Walk {
    const Grant& grant;
    std::string base;  // where the grant begins
    std::string root;  // the mount that it lies in
    std::deque<Directory> pending;
  };
  using Extra = std::vector<std::pair<std::string, HeldNames::Treatment>>;

  [[nodiscard]] Extra extra_names(const std::string& path, const Grant& grant);
  void find_renamed_masks(const std::string& base);
  [[nodiscard]] std::string mounted_above(const std::string& path) const;
  void look_into(Walk& walk, const Directory& directory);
  [[nodiscard]] bool watch(const Walk& walk, const Directory& directory, int fd);
  void look_at(Walk& walk, const Directory& directory, const Entry& entry);
  void hide(const Walk& walk, const std::string& path);
  void hold(const Walk& walk, const std::string& path);
  [[nodiscard]] bool may_mount(const std::string& path, const Identity& identity);
  void pin_ancestors(const Walk& walk, std::string_view path);
  void leave(const std::string& path, const Identity& identity);
  void keep_file(const std::string& path, const Grant& grant);
  void tell_link(const std::string& path);

  const lower::Plan& plan_;
  const Grants& grants_;
  const KeptPlaces& kept_;
  std::array<std::string, 2> homes_;  // as the caller names it, and without links
  std::vector<std::string> masks_;
  std::size_t directories_left_;
  std::size_t mounts_left_;
  Tree& tree_;
  Bound& bound_;
};

}  // namespace capgate::sandbox
