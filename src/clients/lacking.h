// Compares what a server is started with to the catalog's manifest for it: a hint for runs that
// fail (sandbox/lacking.h).
//
//   find_lacking(manifest, {.command = {"node", "/srv/node_modules/time-mcp/dist/index.js"}})
//     -> {"time-npm", {"clock:tzdata"}}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/manifest.h"
#include "sandbox/lacking.h"

namespace capgate::clients {

struct Start {
  std::vector<std::string> command;
  std::vector<std::string_view> environment;  // NAME=VALUE; views: some are secrets
  std::string home;
  std::string directory;
};

// Empty where the catalog has no entry for the package, or the command does not bind its variables.
// The package is that of a runner's words, or the one in whose directory below node_modules the
// program or the script lies. Not counted: limits, the time, which nothing withholds, and variables
// that the server has in another way.
[[nodiscard]] sandbox::Lacking find_lacking(const core::Manifest& manifest, const Start& start);

}  // namespace capgate::clients
