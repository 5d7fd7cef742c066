// The granted paths of a Plan as this host has them: opened, with the strongest rights that any
// grant gives them, and globs spelled out.
//
//   Grants grants(plan, holes, makes_missing_files);
//   TRY(grants.read());
//   grants.by_path.at("/srv/data").writable
//
// All of them are read before anything is mounted: a grant that another one covers must not be
// mounted on top of it with less.
#pragma once

#include <array>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lower/plan.h"
#include "sandbox/holes.h"
#include "sandbox/host_path.h"

namespace capgate::sandbox {

struct Grant {
  HostPath path;
  bool writable = false;
  std::string_view rights = "read";  // "read", "create", "delete" or "write"
  bool is_named = false;             // by a capability; not only by the command line
};

class Grants {
 public:
  Grants(const lower::Plan& plan, const Holes& holes, bool makes_missing_files);

  [[nodiscard]] std::expected<void, Refusal> read();

  // A directory above the path gives at least as much.
  [[nodiscard]] bool is_covered(std::string_view path, const Grant& grant) const;
  [[nodiscard]] bool has(std::string_view path) const { return by_path.contains(path); }
  [[nodiscard]] bool any_at_or_below(const std::string& directory) const;
  // This very path, not one above it.
  [[nodiscard]] bool may_write(std::string_view path) const {
    const auto found = by_path.find(path);
    return found != by_path.end() && found->second.writable;
  }

  std::map<std::string, Grant, std::less<>> by_path;  // by the resolved path
  std::map<std::string, std::vector<std::string>> globbed;
  std::vector<std::string> notes;

 private:
  using Done = std::expected<void, Refusal>;
  Done read_grant(const std::string& path, std::string_view rights, bool directory);
  Done keep_grant(HostPath opened, std::string_view rights);
  bool make_empty_file(const std::string& path);
  Done read_entries(const std::string& pattern, std::string_view rights);
  [[nodiscard]] bool is_masked(const std::string& path) const;
  [[nodiscard]] bool stays_hidden(const std::string& path) const;
  [[nodiscard]] bool stays_as_it_is(const std::string& path) const;
  [[nodiscard]] bool is_held_back(std::string_view path, std::string_view above) const;
  [[nodiscard]] Done refuse_grants_in_masks() const;

  const lower::Plan& plan_;
  const Holes& holes_;
  bool makes_missing_files_;
  std::array<std::string, 2> homes_;  // as the caller names it, and without links
};

}  // namespace capgate::sandbox
