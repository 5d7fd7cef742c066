// Packages of servers, installed once and then only read.
//
//   ~/.local/share/capgate/packages/npm/@scope+name/1.2.3/    one version, never changed after
//   ~/.local/share/capgate/capgate.lock                       what was installed, with its hashes
//
// A server's command that names a package becomes the package's own entry point, in the store, with
// no registry in sight:
//
//   const auto found = find_installed(store, *package_of(command));
//   found->command     {"node", "STORE/.../dist/index.js", "/srv"}
//   found->directory   what has to be readable inside
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clients/package.h"

namespace capgate::clients {

struct LockedPackage {
  Package package;        // as it was asked for
  std::string version;    // what that was
  std::string integrity;  // of the package's archive, as the registry states it: sha512-...
  std::string tree;  // sha256:... over every file of the installed tree, names and modes included
};

struct Lock {
  std::vector<LockedPackage> packages;  // sorted
};

[[nodiscard]] Checked<Lock> parse_lock(std::string text);
[[nodiscard]] std::string print(const Lock& lock);

struct Store {
  std::string base;  // $XDG_DATA_HOME/capgate
};

struct StoreProblem {
  std::string message;
  std::string help;
};

struct Installed {
  LockedPackage locked;
  std::string directory;
  std::vector<std::string> command;  // the entry point with its interpreter and arguments
};

// Null if the lock has no such package; a problem if the lock has it and the tree does not fit.
[[nodiscard]] std::expected<std::optional<Installed>, StoreProblem> find_installed(
    const Store& store, const PackageCommand& command);

// The hash that the lock holds, of a tree as it is now.
[[nodiscard]] std::expected<std::string, StoreProblem> hash_tree(const std::string& directory);

}  // namespace capgate::clients
