// What may become a path of the store or a word for npm or pip. parse_package() checks what people
// write; these hold for whatever comes from a file, too.
#pragma once

#include <string>
#include <string_view>

#include "clients/package.h"

namespace capgate::clients {

// A name that is no path, no option and no address: "@scope/name", "mcp-server-git".
[[nodiscard]] bool is_name(const Package& package);
// No character that could make a range an address, a file or an alias; empty is any version.
[[nodiscard]] bool is_range(std::string_view range);
[[nodiscard]] bool is_version(std::string_view version);

// "@scope+name": one component of a path.
[[nodiscard]] std::string as_component(std::string_view name);

// Numbers by their value, the rest byte by byte: 1.10.0 is newer than 1.9.0.
[[nodiscard]] bool is_older(std::string_view a, std::string_view b);

// "latest" and "*" say no more than nothing.
[[nodiscard]] bool is_any(std::string_view range);

}  // namespace capgate::clients
