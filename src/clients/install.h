// Installs a package in a sandbox of its own: only the registry that npm's or pip's configuration
// names is reachable, no secret is there, scripts of packages do not run unless they are allowed.
// What comes out is hashed, moved into the store whole and entered in the lock, or nothing is.
//
//   const auto installed = install({.base = data}, TRY(parse_package("npm:time-mcp")), options);
//   installed->locked.version, installed->command
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/store.h"

namespace capgate::clients {

struct InstallOptions {
  bool scripts = false;  // --allow-scripts
  bool again = false;    // --upgrade: ask the registry although the lock has a version in range
  std::string home;      // where npm's and pip's own configuration is looked up
  std::string path;      // $PATH
  std::string registry;  // --registry: instead of the configured one
  std::vector<std::string> environment;
  std::function<void(std::string_view step)> progress;  // may be empty; again while a step lasts
  std::string capgate = "/proc/self/exe";               // what makes sandboxes: its `run`
};

// Installs wait for each other. One that is killed leaves the store and the lock as they were; what
// it was making is removed by the next one.
[[nodiscard]] Stored<Installed> install(const Store& store, const Package& package,
                                        const InstallOptions& options);

// Takes it out of the lock, and its tree out of the store unless a server runs from it: then the
// next install does. False if it is not installed.
[[nodiscard]] Stored<bool> remove_installed(const Store& store, const Package& package);

}  // namespace capgate::clients
