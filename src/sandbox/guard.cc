#include "sandbox/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/path.h"
#include "core/sensitive.h"

namespace capgate::sandbox {
namespace {

// The names in a directory, if they fit into one read: most directories are small, and one listing
// is cheaper than asking for forty names. Of a large one nothing is known, and each name is asked
// for: the cost does not grow with the directory.
class Names {
 public:
  explicit Names(int directory) {
    alignas(dirent64) char buffer[16384];
    sys::Fd listing;
    ssize_t size = ::getdents64(directory, buffer, sizeof(buffer));
    if (size < 0 && errno == EBADF) {  // it was not opened for reading
      listing = sys::Fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (listing.get() < 0) return;
      directory = listing.get();
      size = ::getdents64(directory, buffer, sizeof(buffer));
    }
    char more[512];
    if (size < 0 || ::getdents64(directory, more, sizeof(more)) != 0) return;
    is_complete_ = true;
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names_.emplace_back(name);
    }
    std::ranges::sort(names_);
  }

  // False only if the first component of `path` is surely not there.
  [[nodiscard]] bool may_have(std::string_view path) const {
    return !is_complete_ || std::ranges::binary_search(names_, path.substr(0, path.find('/')));
  }

 private:
  std::vector<std::string> names_;
  bool is_complete_ = false;
};

}  // namespace

Guard::Guard(const Parts& parts)
    : plan_(parts.plan),
      grants_(parts.grants),
      kept_(parts.launcher.kept),
      homes_{parts.launcher.caller.home, real_path(parts.launcher.caller.home)},
      tree_(parts.tree),
      bound_(parts.bound) {
  for (const lower::PlanMount& mount : parts.plan.mounts) {
    if (mount.kind == lower::PlanMount::Kind::mask) {
      masks_.push_back(parts.holes.filled(mount.target));
    }
  }
}

void Guard::keep_safe(const std::string& path, const Grant& grant) {
  if (!grant.path.links.empty() || homes_.front() != homes_.back()) find_renamed_masks(path);
  mask(path, grant);
  if (!grant.path.identity.is_directory()) {
    if (grant.writable) keep_places(path, grant);
    return;
  }
  const Names names(grant.path.fd.get());
  const auto may_have = [&](std::string_view name) { return names.may_have(name); };
  hide_secrets(path, grant.path.fd.get(), may_have);
  if (!grant.writable) return;
  protect(path, grant.path.fd.get(), may_have);
  keep_places(path, grant);
}

// Files that a program of the host runs later stay as they are. Where they do not exist they can
// be made: nothing of ours is left on the host, and what appeared is told at the end.
void Guard::protect(const std::string& base, int directory, const MayHave& may_have) {
  for (const std::string& name : plan_.protected_names) {
    std::string path = format("{}/{}", base, name);
    if (may_have(name)) {
      protect_one(base, directory, path);
    } else if (!grants_.may_write(path)) {
      bound_.not_held.push_back(std::move(path));
    }
  }
  for (const std::string& home : homes_) {
    for (const core::ReadOnlyPath& path : core::startup_below(base, home)) {
      if (!tree_.has(path.path)) protect_one(base, directory, path.path);
    }
    if (home == homes_.back()) break;
  }
}

void Guard::protect_one(const std::string& base, int directory, const std::string& path) {
  if (grants_.may_write(path) || !is_innermost(base, path)) return;
  const auto identity = identify_at(directory, path.substr(base.size() + 1));
  if (!identity) {
    bound_.not_held.push_back(path);
    return;
  }
  if (identity->type == S_IFLNK) {
    tell_link(path);
    return;
  }
  pin_ancestors(base, directory, path);
  if (!tree_.has(path)) tree_.pin(path, *identity, MOUNT_ATTR_RDONLY);
}

// Configurations of clients and programs of capgate, wherever in the grant they lie. A link is kept
// as well: what it leads to is a place of its own.
void Guard::keep_places(const std::string& base, const Grant& grant) {
  const int directory = grant.path.fd.get();
  const auto is_hidden = [&](std::string_view path) {
    return std::ranges::any_of(bound_.masked, [&](const Masked& masked) {
      return core::is_at_or_below(path, masked.path);
    });
  };
  for (const std::string& path : kept_.read_only) {
    if (!is_innermost(base, path) || is_hidden(path)) continue;
    if (path == base) {  // one entry of a glob
      tree_.pin(path, grant.path.identity, MOUNT_ATTR_RDONLY);
      continue;
    }
    const auto identity = identify_at(directory, path.substr(base.size() + 1));
    pin_ancestors(base, directory, path);
    if (!identity) {
      bound_.not_held.push_back(path);
    } else if (!tree_.has(path)) {
      tree_.pin(path, *identity, MOUNT_ATTR_RDONLY);
    }
  }
  for (const std::string& path : kept_.missing) {
    if (is_innermost(base, path) && !contains(bound_.not_held, path)) {
      bound_.not_held.push_back(path);
    }
  }
}

// A mount in an outer grant would disappear under the mount of an inner one.
bool Guard::is_innermost(const std::string& base, std::string_view path) const {
  if (!core::is_at_or_below(path, base)) return false;
  for (; path.size() > base.size(); path = parent_of(path)) {
    const auto found = grants_.by_path.find(path);
    if (found == grants_.by_path.end()) continue;
    if (!grants_.is_covered(path, found->second.writable)) return false;
  }
  return true;
}

void Guard::tell_link(const std::string& path) {
  bound_.notes.push_back(
      format("fs: {} is a link; what it leads to is neither hidden nor protected",
             escape_for_terminal(path)));
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
void Guard::hide_secrets(const std::string& base, int directory, const MayHave& may_have) {
  for (const std::string& name : plan_.hidden_names) {
    if (!may_have(name)) continue;
    const std::string path = format("{}/{}", base, name);
    const auto identity = identify_at(directory, name);
    if (identity && !grants_.has(path) && !tree_.has(path)) cover(base, directory, path, *identity);
  }
}

// The Plan knows credentials by the names that grant and home directory have in the policy. Where a
// link was followed they have others.
void Guard::find_renamed_masks(const std::string& base) {
  for (const std::string& home : homes_) {
    for (const core::HiddenPath& hidden : core::credentials_below(base, home)) {
      if (!grants_.has(hidden.path) && !contains(masks_, hidden.path)) {
        masks_.push_back(hidden.path);
      }
    }
  }
}

void Guard::mask(const std::string& base, const Grant& grant) {
  const int directory = grant.path.fd.get();
  for (const std::string& path : masks_) {
    if (path == base || !is_innermost(base, path) || tree_.has(path)) continue;
    const auto identity = identify_at(directory, path.substr(base.size() + 1));
    if (identity) {
      pin_ancestors(base, directory, path);
      cover(base, directory, path, *identity);
    } else {
      bound_.not_held.push_back(path);
    }
  }
}

// What a link leads to has another name, under which it stays visible: that is told.
void Guard::cover(const std::string& base, int directory, const std::string& path,
                  const Identity& identity) {
  if (identity.type == S_IFLNK) tell_link(path);
  tree_.cover(path, identity);
  bound_.masked.push_back({.path = path, .root = base, .identity = identity});
  for (std::string above = path; above.size() > base.size();) {
    above.resize(above.rfind('/'));
    if (above.size() == base.size()) break;
    const auto way = identify_at(directory, above.substr(base.size() + 1));
    if (way) bound_.ways.push_back({.path = above, .root = base, .identity = *way});
  }
  // Kept, so that its inode number cannot stand for another file.
  bound_.kept.emplace_back(
      ::openat(directory, path.substr(base.size() + 1).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace capgate::sandbox
