// npm's version ranges: ^1.2 ~1.2.3 1.x 1.2 - 2 >=1 <3 || 5, with the meaning that npm gives them.
//
//   in_semver_range("^1.2.0 || 3.x", "1.9.4")  -> true
//
// A prerelease (1.2.3-beta.1) is in a range only if the range names a prerelease of that very
// version.
#pragma once

#include <string_view>

namespace capgate::clients {

[[nodiscard]] bool is_semver_range(std::string_view range);
[[nodiscard]] bool is_semver_version(std::string_view version);

// What cannot be read matches nothing.
[[nodiscard]] bool in_semver_range(std::string_view range, std::string_view version);

}  // namespace capgate::clients
