// The paths= of a rule against the path of a request.
//
//   path_matches("/repos/*/issues", "/repos/capgate/issues")  -> true
//   path_matches("/repos/**", "/repos/a/b")                   -> true; "/repos" alone -> false
//   path_matches("/repos/**", "/repos/%2e%2e/admin")          -> false: ambiguous
//
// A pattern is compared part by part: '*' stands for any characters of one part, a last part "**"
// for all that follows. A path that two servers could read differently matches nothing.
#pragma once

#include <string_view>

namespace capgate::egress {

[[nodiscard]] bool path_matches(std::string_view pattern, std::string_view path);

// Dot segments, empty parts, backslashes, control characters, path parameters on dots, in plain
// form or percent-encoded once or more; a slash that is encoded; a '%' that encodes nothing.
[[nodiscard]] bool is_ambiguous_path(std::string_view path);

}  // namespace capgate::egress
