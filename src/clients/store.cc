#include "clients/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "clients/entry_point.h"
#include "clients/names.h"
#include "sys/file.h"

namespace capgate::clients {
namespace {

constexpr std::size_t largest_lock = std::size_t{16} << 20U;

std::string reinstall(const Package& package) {
  return format("install it again: capgate install --upgrade {}", print(package));
}

// A directory that only the caller, or root, can have changed.
Stored<void> check_directory(const std::string& path, const Package& package) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    return refuse(format("{}: {}", escape_for_terminal(path), std::strerror(errno)),
                  reinstall(package));
  }
  const bool own = info.st_uid == ::geteuid() || info.st_uid == 0;
  if (!S_ISDIR(info.st_mode) || !own || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse(
        format("{} is not a directory that you alone can change", escape_for_terminal(path)),
        reinstall(package));
  }
  return {};
}

}  // namespace

std::string Store::directory_of(const LockedPackage& locked) const {
  constexpr std::size_t prefix = std::string_view("sha256:").size();
  return format("{}/packages/{}/{}/{}-{}", base,
                locked.package.registry == Package::Registry::npm ? "npm" : "pypi",
                as_component(locked.package.name), locked.version, locked.tree.substr(prefix, 16));
}

Stored<Lock> read_lock(const Store& store) {
  auto text = sys::read_file(store.lock_file(), largest_lock);
  if (!text) {
    if (text.error().err == ENOENT || text.error().err == ENOTDIR) return Lock{};
    return refuse(format("cannot read {}: {}", escape_for_terminal(store.lock_file()),
                         sys::reason(text.error())),
                  "it must be a file that you can read");
  }
  return parse_lock(*std::move(text));
}

const LockedPackage* find_locked(const Lock& lock, const Package& package) {
  const LockedPackage* best = nullptr;
  for (const LockedPackage& locked : lock.packages) {
    if (locked.package == package) return &locked;
    if (locked.package.registry != package.registry || locked.package.name != package.name ||
        !(is_any(package.range) || in_range(package.registry, package.range, locked.version))) {
      continue;
    }
    if (best == nullptr || is_older(best->version, locked.version)) best = &locked;
  }
  return best;
}

Stored<std::optional<Installed>> find_installed(const Store& store, const PackageCommand& command) {
  const auto lock = read_lock(store);
  if (!lock) return std::unexpected(lock.error());
  const LockedPackage* found = find_locked(*lock, command.package);
  if (found == nullptr) return std::nullopt;
  return find_installed(store, command, *found);
}

Stored<Installed> find_installed(const Store& store, const PackageCommand& command,
                                 const LockedPackage& locked) {
  Installed out{.locked = locked, .directory = store.directory_of(locked)};
  if (auto done = check_directory(out.directory, locked.package); !done) {
    return std::unexpected(std::move(done).error());
  }
  // No other one of its name: which one that is, PATH would say.
  if (::access(locked.runtime.c_str(), X_OK) != 0) {
    return refuse(format("{} was installed for {}, which is gone", print(locked.package),
                         escape_for_terminal(locked.runtime)),
                  reinstall(locked.package));
  }
  auto entry = entry_point(out.directory, locked, command.executable);
  if (!entry) return std::unexpected(std::move(entry).error());
  out.command = *std::move(entry);
  out.command.insert(out.command.end(), command.arguments.begin(), command.arguments.end());
  return out;
}

Stored<void> check_installed(const Store& store, const LockedPackage& locked) {
  const std::string directory = store.directory_of(locked);
  if (auto done = check_directory(directory, locked.package); !done) return done;
  auto hash = hash_tree(directory);
  if (!hash) return std::unexpected(std::move(hash).error());
  if (*hash == locked.tree) return {};
  return refuse(format("{} was changed after it was installed", escape_for_terminal(directory)),
                reinstall(locked.package));
}

}  // namespace capgate::clients
