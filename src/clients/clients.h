// The clients whose configurations `wrap` knows, and where they lie.
//
//   find_configurations({.home = "/home/me", ...}, find_client("cursor"))
//     -> /home/me/.cursor/mcp.json, if it is there
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clients/client_file.h"

namespace capgate::clients {

struct Client {
  std::string_view id;    // "claude-desktop": what the command line takes
  std::string_view name;  // "Claude Desktop"
  Shape shape;
  // Places in the order in which they are looked for (core/client_places.h); ./ is the caller's
  // directory. All that exist are used.
  std::span<const std::string_view> places = {};
};

[[nodiscard]] std::span<const Client> clients();
[[nodiscard]] const Client* find_client(std::string_view id);

struct ClientPlace {
  const Client* client = nullptr;
  std::string path;
};

struct Surroundings {
  std::string home;
  std::string directory;
  std::vector<std::string> environment;  // NAME=VALUE
};

// Where one of a client's places is here; none if its variable is not set to an absolute path.
[[nodiscard]] std::optional<std::string> expand_place(std::string_view place,
                                                      const Surroundings& surroundings);

// Every place of every client, there or not: what a client may read as its configuration.
[[nodiscard]] std::vector<std::string> all_places(const Surroundings& surroundings);

// The configurations that exist: of one client, or of all. A file that several names lead to, or
// that two clients share, is there once.
[[nodiscard]] std::vector<ClientPlace> find_configurations(const Surroundings& surroundings,
                                                           const Client* only);

// Whose file this is, by the end of its path or by a name that only one client uses; null:
// anyone's.
[[nodiscard]] const Client* guess_client(std::string_view path);

// Whose shape a file has: by its place and name, else by its extension and the keys in it.
[[nodiscard]] std::optional<Shape> guess_shape(std::string_view path, std::string_view text);

}  // namespace capgate::clients
