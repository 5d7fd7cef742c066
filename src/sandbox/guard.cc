#include "sandbox/guard.h"

#include <linux/mount.h>
#include <sys/stat.h>

#include "base/format.h"
#include "base/text.h"
#include "core/path.h"
#include "core/sensitive.h"

namespace capgate::sandbox {

void Guard::keep_safe(const std::string& path, const Grant& grant) {
  mask(path, grant.path.fd.get());
  if (!grant.path.identity.is_directory()) return;
  hide_secrets(path, grant.path.fd.get());
  if (grant.writable) protect(path, grant.path.fd.get());
}

// Files that a program of the host runs later stay as they are. Where they do not exist they can
// be made: nothing of ours is left on the host, and what appeared is told at the end.
void Guard::protect(const std::string& base, int directory) {
  for (const std::string& name : plan_.protected_names) {
    protect_one(base, directory, base + "/" + name);
  }
  for (const core::ReadOnlyPath& path : core::startup_below(base, caller_home_)) {
    protect_one(base, directory, path.path);
  }
}

void Guard::protect_one(const std::string& base, int directory, const std::string& path) {
  if (grants_.has(path)) return;
  const auto identity = identify_at(directory, path.substr(base.size() + 1));
  if (!identity) {
    bound_.not_held.push_back(path);
    return;
  }
  if (identity->type == S_IFLNK) {
    bound_.notes.push_back(
        format("fs: {} is a link and is not protected", escape_for_terminal(path)));
    return;
  }
  pin_ancestors(base, directory, path);
  if (!tree_.has(path)) tree_.pin(path, *identity, MOUNT_ATTR_RDONLY);
}

// A directory that is a mount of its own cannot be renamed or removed from inside.
void Guard::pin_ancestors(const std::string& base, int directory, std::string_view path) {
  for (std::size_t slash = path.find('/', base.size() + 1); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const std::string ancestor(path.substr(0, slash));
    const auto identity = identify_at(directory, ancestor.substr(base.size() + 1));
    if (identity && !tree_.has(ancestor)) tree_.pin(ancestor, *identity, 0);
  }
}

// Files of a workspace that usually hold secrets, at its root. Nothing walks a granted tree.
void Guard::hide_secrets(const std::string& base, int directory) {
  for (const std::string& name : plan_.hidden_names) {
    const std::string path = base + "/" + name;
    const auto identity = identify_at(directory, name);
    if (!identity || identity->type == S_IFLNK || grants_.has(path) || tree_.has(path)) {
      continue;
    }
    tree_.cover(path, *identity);
    bound_.masked.push_back(path);
  }
}

void Guard::mask(const std::string& base, int directory) {
  for (const lower::PlanMount& mount : plan_.mounts) {
    if (mount.kind != lower::PlanMount::Kind::mask) continue;
    const std::string path = holes_.filled(mount.target);
    if (path == base || !core::is_at_or_below(path, base) || tree_.has(path)) continue;
    const auto identity = identify(path);
    if (!identity) {
      bound_.not_held.push_back(path);
      continue;
    }
    pin_ancestors(base, directory, path);
    tree_.cover(path, *identity);
    bound_.masked.push_back(path);
  }
}

}  // namespace capgate::sandbox
