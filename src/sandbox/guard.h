// What stays as it is, or out of sight, inside a granted directory: files that a program of the
// host runs later, credentials, secrets of a workspace.
//
// Every ancestor of such a path, up to the root of the grant, becomes a mount of its own, so that
// it cannot be renamed away from inside. Nothing is made on the host, and nothing walks a granted
// tree: names are looked at where they are known to be.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lower/plan.h"
#include "sandbox/bind.h"
#include "sandbox/grants.h"
#include "sandbox/tree.h"

namespace capgate::sandbox {

class Guard {
 public:
  Guard(const lower::Plan& plan, const Holes& holes, const Grants& grants,
        std::string_view caller_home, Tree& tree, Bound& bound)
      : plan_(plan), grants_(grants), caller_home_(caller_home), tree_(tree), bound_(bound) {
    for (const lower::PlanMount& mount : plan.mounts) {
      if (mount.kind == lower::PlanMount::Kind::mask) masks_.push_back(holes.filled(mount.target));
    }
  }

  // Call when the grant is mounted.
  void keep_safe(const std::string& path, const Grant& grant);

 private:
  using MayHave = std::function<bool(std::string_view)>;
  void protect(const std::string& base, int directory, const MayHave& may_have);
  void protect_one(const std::string& base, int directory, const std::string& path);
  void pin_ancestors(const std::string& base, int directory, std::string_view path);
  void hide_secrets(const std::string& base, int directory, const MayHave& may_have);
  void mask(const std::string& base, const Grant& grant);
  void cover(const std::string& base, int directory, const std::string& path,
             const Identity& identity);
  [[nodiscard]] bool is_named_for_writing(const std::string& path) const;

  const lower::Plan& plan_;
  const Grants& grants_;
  std::string_view caller_home_;
  std::vector<std::string> masks_;
  Tree& tree_;
  Bound& bound_;
};

}  // namespace capgate::sandbox
