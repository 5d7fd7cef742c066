#include "sandbox/tree.h"

#include <linux/mount.h>

namespace capgate::sandbox {
namespace {

using orders::MountKind;

constexpr std::uint64_t always = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

}  // namespace

bool Tree::is_host(std::string_view path) const {
  for (; !path.empty(); path = parent_of(path)) {
    const auto found = places_.find(path);
    if (found == places_.end() || found->second == Place::made) continue;
    return found->second == Place::host;
  }
  return false;
}

bool Tree::is_private(std::string_view path) const {
  for (; !path.empty(); path = parent_of(path)) {
    const auto found = places_.find(path);
    if (found != places_.end() && found->second == Place::host) return false;
  }
  return true;
}

// Inside a mount of the host the parents exist, since the host has them.
void Tree::parents(const std::string& path) {
  const std::string_view parent = parent_of(path);
  if (parent.empty() || has(parent) || is_host(parent)) return;
  directory(std::string(parent));
}

void Tree::directory(const std::string& path, std::uint32_t mode) {
  if (has(path) || is_host(path)) return;
  parents(path);
  mounts_.push_back({.kind = MountKind::directory, .target = path, .mode = mode});
  places_.emplace(path, Place::made);
}

void Tree::file(const std::string& path, std::string contents, std::uint32_t mode) {
  if (has(path) || is_host(path)) return;
  parents(path);
  mounts_.push_back(
      {.kind = MountKind::file, .target = path, .source = std::move(contents), .mode = mode});
  places_.emplace(path, Place::made);
}

void Tree::symlink(const std::string& path, std::string target) {
  if (has(path) || is_host(path)) return;
  parents(path);
  mounts_.push_back({.kind = MountKind::symlink, .target = path, .source = std::move(target)});
  places_.emplace(path, Place::made);
}

void Tree::tmpfs(const std::string& path, std::uint64_t size, std::uint32_t mode,
                 std::uint64_t attributes) {
  directory(path);
  mounts_.push_back({.kind = MountKind::tmpfs,
                     .target = path,
                     .mode = mode,
                     .size = size,
                     .attributes = attributes | always});
  places_[path] = Place::own;
}

void Tree::proc(const std::string& path, std::uint64_t attributes) {
  directory(path);
  mounts_.push_back({.kind = MountKind::proc, .target = path, .attributes = attributes | always});
  places_[path] = Place::own;
}

void Tree::bind(const std::string& target, const std::string& source, const Identity& identity,
                std::uint64_t attributes, std::string_view rights) {
  if (identity.is_directory()) {
    directory(target);
  } else {
    file(target, "", 0444);
  }
  const bool is_device = identity.type == S_IFCHR;
  mounts_.push_back({.kind = MountKind::bind,
                     .target = target,
                     .source = source,
                     .identity = identity,
                     .attributes = attributes | (is_device ? MOUNT_ATTR_NOSUID : always),
                     .rights = rights,
                     .in_private = is_private(parent_of(target)),
                     .owned = !rights.empty()});
  places_[target] = Place::host;
}

void Tree::pin(const std::string& path, const Identity& identity, std::uint64_t attributes) {
  mounts_.push_back({.kind = MountKind::pin,
                     .target = path,
                     .identity = identity,
                     .attributes = attributes | always});
  places_[path] = Place::host;
}

void Tree::cover(const std::string& path, const Identity& identity) {
  mounts_.push_back({.kind = MountKind::cover,
                     .target = path,
                     .identity = identity,
                     .attributes = always | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC});
  places_[path] = Place::host;
}

void Tree::cover_with(const std::string& path, const std::string& made) {
  mounts_.push_back({.kind = MountKind::cover,
                     .target = path,
                     .source = made,
                     .attributes = always | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC,
                     .optional = true});
}

void Tree::reserve(std::size_t mounts) {
  constexpr std::size_t rest = 64;  // of what comes after them
  mounts_.reserve(mounts_.size() + 2 * mounts + rest);
  places_.reserve(places_.size() + mounts);
}

void Tree::read_only_at_the_end(const std::string& path) { read_only_.push_back(path); }

std::vector<BoundMount> Tree::take() && {
  for (const std::string& path : read_only_) {
    mounts_.push_back(
        {.kind = MountKind::attributes, .target = path, .attributes = MOUNT_ATTR_RDONLY});
  }
  return std::move(mounts_);
}

}  // namespace capgate::sandbox
