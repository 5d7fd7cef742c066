// Which package a command starts. Clients start most servers through a package runner:
//
//   package_of({"npx", "-y", "@scope/server@1.2", "/srv"})
//     -> npm:@scope/server@1.2 with the arguments {"/srv"}
//
// Known runners: npx, npm exec, pnpm dlx, bunx (npm) and uvx, uv tool run, pipx run (PyPI), by
// their file name, with the options that servers are started with. An option that is not known
// makes the command an ordinary one: nothing is guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace capgate::clients {

struct Package {
  enum class Registry : std::uint8_t { npm, pypi };
  Registry registry = Registry::npm;
  std::string name;   // npm: as published; PyPI: normalised (lower case, '-')
  std::string range;  // what versions will do, in the registry's own words; empty: any

  bool operator==(const Package&) const = default;
};

// "npm:@scope/name@^1.2", "pypi:mcp-server-git==2025.1": checked as the registry checks names, so
// that a name can never be an option, a path or an address.
[[nodiscard]] Result<Package> parse_package(std::string_view text);
[[nodiscard]] std::string print(const Package& package);

struct PackageCommand {
  Package package;
  std::string executable;  // which of its programs; empty: the one of the package's name
  std::vector<std::string> arguments;
};

[[nodiscard]] std::optional<PackageCommand> package_of(const std::vector<std::string>& command);

// Does this exact version lie in the range? npm: semver ranges (^ ~ x - || and comparisons);
// PyPI: the comparisons of PEP 440 separated by commas. What cannot be read matches nothing.
[[nodiscard]] bool in_range(Package::Registry registry, std::string_view range,
                            std::string_view version);

}  // namespace capgate::clients
