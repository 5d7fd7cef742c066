// The clients whose configurations `wrap` knows, and where they lie.
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
  // Places in the order in which they are looked for; ~ is HOME, ./ the caller's directory, $NAME a
  // variable of the environment. All that exist are used.
  std::vector<std::string_view> places;
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

// The configurations that exist: of one client, or of all.
[[nodiscard]] std::vector<ClientPlace> find_configurations(const Surroundings& surroundings,
                                                           const Client* only);

// Whose shape a file has: by its place and name, else by its extension and the keys in it.
[[nodiscard]] std::optional<Shape> guess_shape(std::string_view path, std::string_view text);

}  // namespace capgate::clients
