// What a policy says about a path on macOS, slowly and from the tables themselves: nothing here is
// taken from the lowering.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"
#include "core/policy.h"
#include "core/rights.h"
#include "core/sensitive.h"

namespace capgate::support {

class SeatbeltOracle {
 public:
  enum class Right : unsigned char { read, modify, create, remove };

  SeatbeltOracle(const core::Policy& policy, std::string home, std::string tmpdir)
      : policy_(policy), home_(std::move(home)), tmpdir_(std::move(tmpdir)) {}

  [[nodiscard]] static std::string real(std::string_view path) {
    for (const std::string_view link : {"/etc", "/tmp", "/var"}) {
      if (core::is_at_or_below(path, link)) return "/private" + std::string(path);
    }
    return std::string(path);
  }
  [[nodiscard]] static std::string known_as(std::string_view path) {
    for (const std::string_view link : {"/private/etc", "/private/tmp", "/private/var"}) {
      if (core::is_at_or_below(path, link)) return std::string(path.substr(8));
    }
    return std::string(path);
  }

  // `path` is a real path, outside of what every profile can read.
  [[nodiscard]] bool allows(Right right, const std::string& path) const {
    if (!tmpdir_.empty() && core::is_at_or_below(path, tmpdir_)) {
      return right != Right::remove || path != tmpdir_;
    }
    if ((right == Right::remove || right == Right::create) && is_pinned(path, right)) return false;
    const std::string held = innermost_held(path, right);
    return std::ranges::any_of(policy_.files, [&](const auto& grant) {
      return opens(grant.capability, path, right) &&
             (held.empty() || core::is_at_or_below(real(grant.capability.path.base), held));
    });
  }

  // A directory above a grant can be looked at, so that the grant can be found.
  [[nodiscard]] bool is_above_a_grant(const std::string& path) const {
    return std::ranges::any_of(policy_.files, [&](const auto& grant) {
      const std::string base = real(grant.capability.path.base);
      const bool entries = grant.capability.path.shape == core::PathPattern::Shape::entries;
      return grant.capability.path.base != "/tmp" &&
             (base.starts_with(path + "/") || (entries && base == path));
    });
  }

 private:
  static bool opens(const core::FsCapability& fs, const std::string& path, Right right) {
    if (fs.path.base == "/tmp") return false;  // the server's own
    const core::FileRights rights = core::rights_of(fs.actions);
    const std::uint8_t needed = right == Right::read     ? core::FileRights::read
                                : right == Right::remove ? core::FileRights::remove
                                                         : core::FileRights::modify;
    if (!rights.has(needed)) return false;
    const std::string base = real(fs.path.base);
    if (fs.path.shape != core::PathPattern::Shape::entries) {
      return core::is_at_or_below(path, base);
    }
    if (!path.starts_with(base + "/")) return false;
    const std::string rest = path.substr(base.size() + 1);
    return core::matches_entry(rest.substr(0, rest.find('/')), fs.path.glob);
  }

  static bool writes(const core::FsCapability& fs) {
    return core::rights_of(fs.actions) != core::FileRights{core::FileRights::read};
  }

  // This very path is held: closed, or for writes also read-only.
  [[nodiscard]] bool is_held(const std::string& path, Right right) const {
    const std::string known = known_as(path);
    const std::string above = known.substr(0, known.rfind('/'));
    const auto* entry = core::credential_at(known, home_);
    if (entry != nullptr && (above.empty() || core::credential_at(above, home_) != entry)) {
      return true;
    }
    return std::ranges::any_of(policy_.files, [&](const auto& grant) {
      const core::FsCapability& fs = grant.capability;
      const std::string base = real(fs.path.base);
      if (fs.path.base == "/tmp" || !path.starts_with(base + "/")) return false;
      const std::string name = to_lower(path.substr(base.size() + 1));
      const auto is_name = [&](std::string_view held) { return to_lower(held) == name; };
      if (std::ranges::any_of(core::workspace_secret_names(), is_name)) return true;
      if (right == Right::read || !writes(fs)) return false;
      const auto* startup = core::startup_at(known, home_);
      const bool runs_later = startup != nullptr && core::startup_at(above, home_) != startup;
      return runs_later || std::ranges::any_of(core::protected_workspace_paths(), is_name);
    });
  }

  [[nodiscard]] std::string innermost_held(const std::string& path, Right right) const {
    for (std::string at = path; !at.empty(); at.resize(at.rfind('/'))) {
      if (is_held(at, right)) return at;
    }
    return {};
  }

  // The root of a writable grant stays; so does what lies between it and something held.
  [[nodiscard]] bool is_pinned(const std::string& path, Right right) const {
    return std::ranges::any_of(policy_.files, [&](const auto& grant) {
      const core::FsCapability& fs = grant.capability;
      const std::string base = real(fs.path.base);
      if (fs.path.base == "/tmp" || !writes(fs)) return false;
      const bool entries = fs.path.shape == core::PathPattern::Shape::entries;
      if (!entries && right == Right::remove && path == base) return true;
      return path.starts_with(base + "/") &&
             (holds_something_held(path, base) || inner_grant_holds(path, base));
    });
  }

  [[nodiscard]] bool holds_something_held(const std::string& path, const std::string& base) const {
    const std::string wanted = to_lower(path) + "/";
    const auto is_below = [&](std::string_view held) {
      return to_lower(real(held)).starts_with(wanted);
    };
    const std::string known = known_as(base);
    const auto hidden = core::credentials_below(known, home_);
    const auto later = core::startup_below(known, home_);
    return std::ranges::any_of(hidden, [&](const auto& h) { return is_below(h.path); }) ||
           std::ranges::any_of(later, [&](const auto& h) { return is_below(h.path); }) ||
           std::ranges::any_of(core::protected_workspace_paths(), [&](std::string_view name) {
             return is_below(known + "/" + std::string(name));
           });
  }

  // Names are held at the root of each grant, also of one that lies deeper.
  [[nodiscard]] bool inner_grant_holds(const std::string& path, const std::string& base) const {
    return std::ranges::any_of(policy_.files, [&](const auto& grant) {
      const std::string inner = real(grant.capability.path.base);
      return inner != base && core::is_at_or_below(inner, base) &&
             (inner == path || inner.starts_with(path + "/"));
    });
  }

  const core::Policy& policy_;
  std::string home_;
  std::string tmpdir_;
};

}  // namespace capgate::support
