// Python's version specifiers (PEP 440): ==1.2.* ~=1.4 >=1,<2 !=1.5, separated by commas.
//
//   in_pep440_range(">=1.2,<2", "1.9.post1")  -> true
//
// A prerelease is in a range only if the range itself names one.
#pragma once

#include <string_view>

namespace capgate::clients {

[[nodiscard]] bool is_pep440_range(std::string_view range);
[[nodiscard]] bool is_pep440_version(std::string_view version);

// What cannot be read matches nothing.
[[nodiscard]] bool in_pep440_range(std::string_view range, std::string_view version);

}  // namespace capgate::clients
