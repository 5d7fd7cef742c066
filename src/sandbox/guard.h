// What stays as it is, or out of sight, inside a granted directory: files that a program of the
// host runs later, credentials, secrets of a workspace.
//
// Every ancestor of such a path, up to the root of the grant, becomes a mount of its own, so that
// it cannot be renamed away from inside. Nothing is made on the host, and nothing walks a granted
// tree: names are looked at where they are known to be.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/parts.h"

namespace capgate::sandbox {

class Guard {
 public:
  explicit Guard(const Parts& parts);

  // Call when the grant is mounted.
  void keep_safe(const std::string& path, const Grant& grant);

 private:
  using MayHave = std::function<bool(std::string_view)>;
  void protect(const std::string& base, int directory, const MayHave& may_have);
  void protect_one(const std::string& base, int directory, const std::string& path);
  void pin_ancestors(const std::string& base, int directory, std::string_view path);
  void hide_secrets(const std::string& base, int directory, const MayHave& may_have);
  void keep_places(const std::string& base, const Grant& grant);
  [[nodiscard]] bool is_innermost(const std::string& base, std::string_view path) const;
  void tell_link(const std::string& path);
  void find_renamed_masks(const std::string& base);
  void mask(const std::string& base, const Grant& grant);
  void cover(const std::string& base, int directory, const std::string& path,
             const Identity& identity);

  const lower::Plan& plan_;
  const Grants& grants_;
  const KeptPlaces& kept_;
  std::array<std::string, 2> homes_;  // as the caller names it, and without links
  std::vector<std::string> masks_;
  Tree& tree_;
  Bound& bound_;
};

}  // namespace capgate::sandbox
