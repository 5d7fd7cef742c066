#include "sandbox/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/path.h"
#include "core/sensitive.h"

namespace capgate::sandbox {
namespace {

// Of all grants together: ordinary directories below their roots that are listed, and mounts over
// what was found. Both take about 15 microseconds each.
constexpr std::size_t most_directories = 64;
constexpr std::size_t most_mounts = 256;

using Treatment = HeldNames::Treatment;

// Never through a link, and never out of the grant.
sys::Fd open_below(int grant, const std::string& path) {
  if (path.empty()) return sys::Fd(::openat(grant, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const open_how how{.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
                     .mode = 0,
                     .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  return sys::Fd(static_cast<int>(::syscall(SYS_openat2, grant, path.c_str(), &how, sizeof(how))));
}

// The entries of a directory, if they fit into one read: most directories are small, and one
// listing is cheaper than asking for forty names. Nothing for a large one, where each name is asked
// for.
std::optional<std::vector<std::pair<std::string, unsigned char>>> list(int directory) {
  alignas(dirent64) char buffer[16384];
  const ssize_t size = ::getdents64(directory, buffer, sizeof(buffer));
  char more[512];
  if (size < 0 || ::getdents64(directory, more, sizeof(more)) != 0) return std::nullopt;
  std::vector<std::pair<std::string, unsigned char>> out;
  for (ssize_t at = 0; at < size;) {
    const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
    at += entry->d_reclen;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name, entry->d_type);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

Guard::Guard(const Parts& parts)
    : plan_(parts.plan),
      grants_(parts.grants),
      kept_(parts.launcher.kept),
      homes_{parts.launcher.caller.home, real_path(parts.launcher.caller.home)},
      directories_left_(most_directories),
      mounts_left_(most_mounts),
      tree_(parts.tree),
      bound_(parts.bound) {
  bound_.watched.names = HeldNames(plan_.hidden_names, plan_.protected_names);
  for (const lower::PlanMount& mount : parts.plan.mounts) {
    if (mount.kind == lower::PlanMount::Kind::mask) {
      masks_.push_back(parts.holes.filled(mount.target));
    }
  }
}

void Guard::keep_safe(const std::string& path, const Grant& grant) {
  if (!grant.path.identity.is_directory()) return keep_file(path, grant);
  if (!grant.path.links.empty() || homes_.front() != homes_.back()) find_renamed_masks(path);
  HeldNames& names = bound_.watched.names;
  const HeldNames::Role role = names.with(names.role_of(path), extra_names(path, grant));
  if (role == HeldNames::none) return;
  Walk walk{.grant = grant, .base = path, .root = mounted_above(path), .pending = {}};
  walk.pending.push_back({.path = path, .role = role});
  while (!walk.pending.empty()) {
    const Directory directory = std::move(walk.pending.front());
    walk.pending.pop_front();
    look_into(walk, directory);
  }
}

// A grant that another one covers has no mount of its own.
std::string Guard::mounted_above(const std::string& path) const {
  std::string above = path;
  while (!above.empty() && !(grants_.has(above) && tree_.has(above))) above = parent_of(above);
  return above.empty() ? path : above;
}

// Credentials, files that a session runs, configurations of clients and programs of capgate: known
// by where they are, not by their names alone.
Guard::Extra Guard::extra_names(const std::string& path, const Grant& grant) {
  Extra out;
  const auto add = [&](const std::string& other, Treatment treatment) {
    if (other != path && core::is_at_or_below(other, path)) {
      out.emplace_back(other.substr(path.size() + 1), treatment);
    }
  };
  if (grant.writable) {
    for (const std::string& home : homes_) {
      for (const core::ReadOnlyPath& startup : core::startup_below(path, home)) {
        add(startup.path, Treatment::hold);
      }
      if (home == homes_.back()) break;
    }
    for (const auto* places : {&kept_.read_only, &kept_.missing}) {
      for (const std::string& place : *places) add(place, Treatment::hold);
    }
  }
  for (const std::string& mask : masks_) add(mask, Treatment::hide);
  return out;
}

// One entry of a glob.
void Guard::keep_file(const std::string& path, const Grant& grant) {
  if (!grant.writable || !contains(kept_.read_only, path)) return;
  tree_.pin(path, grant.path.identity, MOUNT_ATTR_RDONLY);
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

void Guard::look_into(Walk& walk, const Directory& directory) {
  const bool is_root = directory.path == walk.base;
  if (!is_root && directory.role == HeldNames::project) {
    if (directories_left_ == 0) return bound_.not_held.push_back(directory.path);
    --directories_left_;
  }
  const std::string below = is_root ? "" : directory.path.substr(walk.base.size() + 1);
  const sys::Fd fd = open_below(walk.grant.path.fd.get(), below);
  // What the caller cannot open, the server cannot either.
  if (fd.get() < 0 || !watch(walk, directory, fd.get())) return;
  const auto entries = list(fd.get());
  if (entries) {
    for (const auto& [name, type] : *entries) {
      look_at(walk, directory, {.name = name, .is_directory = type == DT_DIR});
    }
    return;
  }
  if (directory.role == HeldNames::project) bound_.not_held.push_back(directory.path);
  for (const std::string_view known : bound_.watched.names.known(directory.role)) {
    const std::string name(known);
    const auto identity = identify_at(fd.get(), name);
    if (!identity) continue;
    look_at(walk, directory, {.name = name, .is_directory = identity->is_directory()});
  }
}

// False where an ordinary directory cannot be watched: it is left out of the walk then.
bool Guard::watch(const Walk& walk, const Directory& directory, int fd) {
  const auto error = bound_.watched.watch(format("/proc/self/fd/{}", fd).c_str(),
                                          {.path = directory.path,
                                           .root = walk.root,
                                           .role = directory.role,
                                           .writable = walk.grant.writable});
  if (!error) return true;
  if (directory.path != walk.base && directory.role == HeldNames::project) {
    bound_.not_held.push_back(directory.path);
    return false;
  }
  bound_.watched.problem =
      format("cannot watch {}: {}", escape_for_terminal(directory.path), std::strerror(*error));
  return true;
}

void Guard::look_at(Walk& walk, const Directory& directory, const Entry& entry) {
  const HeldNames::Child child = bound_.watched.names.child(directory.role, entry.name);
  const std::string path = format("{}/{}", directory.path, entry.name);
  const bool is_git = child.check == HeldNames::Check::not_a_directory && entry.is_directory;
  if (child.treatment == Treatment::hide) return hide(walk, path);
  if (child.treatment == Treatment::hold && !is_git) hold(walk, path);
  // Around a program that the command line names, the walk ends at once.
  const bool is_far = child.role == HeldNames::project && !walk.grant.is_named;
  if (entry.is_directory && child.role != HeldNames::none && !is_far && !grants_.has(path)) {
    walk.pending.push_back({.path = path, .role = child.role});
  }
}

void Guard::leave(const std::string& path, const Identity& identity) {
  bound_.watched.left[path] = {identity.device, identity.inode};
}

bool Guard::may_mount(const std::string& path, const Identity& identity) {
  if (tree_.has(path)) return false;
  if (mounts_left_ == 0) {
    bound_.not_held.push_back(path);
    leave(path, identity);
    return false;
  }
  --mounts_left_;
  return true;
}

// What a link leads to has another name, under which it stays visible: that is told.
void Guard::hide(const Walk& walk, const std::string& path) {
  if (grants_.has(path)) return;
  const auto identity = identify(path);
  if (!identity || !may_mount(path, *identity)) return;
  if (identity->type == S_IFLNK) tell_link(path);
  pin_ancestors(walk, path);
  tree_.cover(path, *identity);
  bound_.watched.held[path] = {.root = walk.root, .is_hidden = true};
  // Kept, so that its inode number cannot stand for another file.
  bound_.kept.emplace_back(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

void Guard::hold(const Walk& walk, const std::string& path) {
  if (!walk.grant.writable || grants_.may_write(path)) return;
  const auto identity = identify(path);
  if (!identity) return;
  if (!may_mount(path, *identity)) return;
  if (identity->type == S_IFLNK) tell_link(path);
  pin_ancestors(walk, path);
  tree_.pin(path, *identity, MOUNT_ATTR_RDONLY);
  bound_.watched.held[path] = {.root = walk.root, .is_hidden = false};
}

void Guard::tell_link(const std::string& path) {
  bound_.notes.push_back(
      format("fs: {} is a link; what it leads to is neither hidden nor protected",
             escape_for_terminal(path)));
}

// A directory that is a mount of its own cannot be renamed or removed from inside.
void Guard::pin_ancestors(const Walk& walk, std::string_view path) {
  for (std::size_t slash = path.find('/', walk.root.size() + 1); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const std::string ancestor(path.substr(0, slash));
    if (tree_.has(ancestor)) continue;
    if (const auto identity = identify(ancestor)) tree_.pin(ancestor, *identity, 0);
  }
}

}  // namespace capgate::sandbox
