#include "sandbox/view.h"

#include <fcntl.h>
#include <linux/mount.h>

#include "base/format.h"
#include "base/text.h"
#include "core/path.h"
#include "sandbox/host_path.h"

namespace capgate::sandbox {
namespace {

using orders::MountKind;

constexpr int most_links = 40;  // as the kernel has it

bool is_made(MountKind kind) {
  return kind == MountKind::directory || kind == MountKind::file || kind == MountKind::symlink;
}

std::string joined(std::string_view directory, std::string_view name) {
  return directory == "/" ? format("/{}", name) : format("{}/{}", directory, name);
}

}  // namespace

Seen View::look(const std::string& path) const {
  std::string done = "/";
  std::string rest = path;
  for (int links = 0; links < most_links;) {
    rest.erase(0, rest.find_first_not_of('/'));
    if (rest.empty()) return look_at(done);
    const std::string name = rest.substr(0, rest.find('/'));
    rest.erase(0, name.size());
    if (name == ".") continue;
    if (name == "..") {
      const std::string_view above = parent_of(done);
      done = above.empty() ? "/" : std::string(above);
      continue;
    }
    const std::string next = joined(done, name);
    const Seen seen = look_at(next);
    const std::string target = link_at(seen);
    if (target.empty()) {
      done = next;
      continue;
    }
    ++links;
    rest.insert(0, target);
    if (target.starts_with('/')) done = "/";
  }
  return {.path = path, .loops = true};
}

Seen View::look_at(const std::string& path) const {
  Seen seen{.path = path};
  const BoundMount* made = nullptr;   // at this very path
  const BoundMount* under = nullptr;  // what a pin is mounted on
  bool is_way = path == "/";          // a directory that something lies in
  for (const BoundMount& mount : bound_.mounts) {
    if (is_made(mount.kind)) {
      if (mount.target == path) made = &mount;
      is_way |= core::is_at_or_below(mount.target, path);
      continue;
    }
    if (!core::is_at_or_below(path, mount.target)) continue;
    if (mount.kind == MountKind::attributes) {
      seen.is_read_only |= seen.mount != nullptr && seen.mount->target == mount.target;
      continue;
    }
    if (mount.kind != MountKind::pin) under = &mount;
    seen.mount = &mount;
    seen.is_read_only = (mount.attributes & MOUNT_ATTR_RDONLY) != 0;
  }
  const bool is_bind = under != nullptr && under->kind == MountKind::bind;
  if (is_bind && seen.mount->kind != MountKind::cover) {
    seen.host = under->source + path.substr(under->target.size());
    const auto identity = identify(seen.host);
    seen.exists = identity.has_value();
    seen.is_directory = identity && identity->is_directory();
    return seen;
  }
  if (made != nullptr && made->kind == MountKind::symlink) seen.mount = made;
  seen.exists = made != nullptr || is_way || (under != nullptr && under->target == path);
  seen.is_directory = seen.exists && (made == nullptr || made->kind == MountKind::directory);
  return seen;
}

std::string View::link_at(const Seen& seen) const {
  if (seen.mount != nullptr && seen.mount->kind == MountKind::symlink &&
      seen.mount->target == seen.path) {
    return seen.mount->source;
  }
  return seen.host.empty() || !seen.exists ? "" : read_link(AT_FDCWD, seen.host);
}

std::uint64_t View::access(std::string_view path) const {
  std::uint64_t out = 0;
  for (const BoundRule& rule : bound_.landlock) {
    if (core::is_at_or_below(path, rule.path)) out |= rule.access;
  }
  return out;
}

}  // namespace capgate::sandbox
