// Installs a package in a sandbox of its own: only the registry that npm's or pip's configuration
// names is reachable, no secret is there, scripts of packages do not run unless they are allowed.
// What comes out is hashed, moved into the store whole and entered in the lock, or nothing is.
#pragma once

#include <expected>
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
  std::function<void(std::string_view step)> progress;  // may be empty
};

[[nodiscard]] std::expected<Installed, StoreProblem> install(const Store& store,
                                                             const Package& package,
                                                             const InstallOptions& options);

}  // namespace capgate::clients
