// Where the MCP clients that capgate knows keep the files that name their servers. A program of
// the host starts what such a file says, outside of any sandbox: `wrap` rewrites these files, and a
// sandbox keeps them read-only inside a writable grant. Both use this one table, so that no file
// can be wrapped that is not protected.
//
//   for (const ClientConfig& each : client_configs()) ...   {"zed", {"./.zed/settings.json", ...}}
//
// A place starts with ~ for HOME, with . for a project's directory, or with $NAME for a variable
// of the environment. ~/.config stands for XDG_CONFIG_HOME where that is set.
#pragma once

#include <span>
#include <string_view>

namespace capgate::core {

struct ClientConfig {
  std::string_view client;  // "claude-desktop": what the command line takes
  std::span<const std::string_view> places;
};
[[nodiscard]] std::span<const ClientConfig> client_configs();

// The places of one client, in the order in which they are looked for; empty for an unknown one.
[[nodiscard]] std::span<const std::string_view> places_of_client(std::string_view client);

inline constexpr std::string_view project_prefix = "./";
inline constexpr std::string_view home_prefix = "~/";

}  // namespace capgate::core
