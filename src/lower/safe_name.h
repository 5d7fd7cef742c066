// A server's name as a name of files, units, users and objects.
//
//   safe_name("@scope/server-github", 40)  ->  "scope-server-github"
//
// Lower-case letters, digits and single dashes between them; at least one of them is a letter or a
// digit. What is too long, or has nothing left, ends in a hash of the whole name, so that two long
// names do not become one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace capgate::lower {

// `longest` is at least 16.
[[nodiscard]] std::string safe_name(std::string_view name, std::size_t longest);

}  // namespace capgate::lower
