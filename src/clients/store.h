// Packages of servers, installed once and then only read.
//
//   ~/.local/share/capgate/packages/npm/@scope+name/1.2.3-0f3a.../  one tree, never changed after
//   ~/.local/share/capgate/capgate.lock                             what is installed, with hashes
//   ~/.local/share/capgate/staging/                                 installs that are not finished
//
// The name of a tree has the start of its hash, so that a new tree of the same version lies beside
// the old one, and the lock alone says which one holds: replacing the lock is the whole commit.
//
// A server's command that names a package becomes the package's own entry point, at the place where
// the sandbox shows the tree, with no registry in sight:
//
//   const auto found = find_installed(store, *package_of(command));
//   found->command     {"/usr/bin/node", "/opt/capgate/package/node_modules/x/index.js", "/srv"}
//   found->directory   what lies there: Session::package
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clients/package.h"

namespace capgate::clients {

struct StoreProblem {
  std::string message;
  std::string help;
};

template <typename T>
using Stored = std::expected<T, StoreProblem>;

[[nodiscard]] inline std::unexpected<StoreProblem> refuse(std::string message, std::string help) {
  return std::unexpected(StoreProblem{.message = std::move(message), .help = std::move(help)});
}

struct LockedPackage {
  Package package;        // as it was asked for
  std::string version;    // what that was
  std::string integrity;  // of the package's archive, as the registry states it: sha512-...
  std::string tree;  // sha256:... over every file of the installed tree, names and modes included
  std::string runtime;   // the interpreter that it was installed for: an absolute path
  bool scripts = false;  // scripts of packages ran (--allow-scripts)

  bool operator==(const LockedPackage&) const = default;
};

struct Lock {
  std::vector<LockedPackage> packages;  // sorted

  bool operator==(const Lock&) const = default;
};

// Strictly: whatever capgate did not write is refused. print() is what it writes.
[[nodiscard]] Stored<Lock> parse_lock(std::string text);
[[nodiscard]] std::string print(const Lock& lock);

struct Store {
  std::string base;  // $XDG_DATA_HOME/capgate

  [[nodiscard]] std::string lock_file() const { return base + "/capgate.lock"; }
  [[nodiscard]] std::string staging() const { return base + "/staging"; }
  // Where the tree of an entry lies.
  [[nodiscard]] std::string directory_of(const LockedPackage& locked) const;
};

// What is installed; nothing, if there is no lock.
[[nodiscard]] Stored<Lock> read_lock(const Store& store);

struct Installed {
  LockedPackage locked;
  std::string directory;
  std::vector<std::string> command;  // the entry point with its interpreter and arguments
};

// The entry that serves this request: of these very words, else the newest one whose version is in
// the range; null if there is none.
[[nodiscard]] const LockedPackage* find_locked(const Lock& lock, const Package& package);

// Null if the lock has no such package; a problem if the lock has it and the tree does not fit.
// That is looked at in a few calls, whatever the size of the tree: it is a directory of the
// caller's that nobody else writes, its package has the name and the version of the lock, and its
// entry point is a file in it. check_installed() reads all of it.
[[nodiscard]] Stored<std::optional<Installed>> find_installed(const Store& store,
                                                              const PackageCommand& command);

// The same with an entry that was read before.
[[nodiscard]] Stored<Installed> find_installed(const Store& store, const PackageCommand& command,
                                               const LockedPackage& locked);

// Every file of the tree is as it was when it was installed.
[[nodiscard]] Stored<void> check_installed(const Store& store, const LockedPackage& locked);

// The hash that the lock holds, of a tree as it is now.
[[nodiscard]] Stored<std::string> hash_tree(const std::string& directory);

}  // namespace capgate::clients
