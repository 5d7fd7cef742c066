// The target of a request line, in the four forms of RFC 9112, section 3.2.
//
//   parse_target("GET", "http://a:8080/b?c")  -> authority "a:8080", path "/b", origin "/b?c"
#pragma once

#include <optional>
#include <string_view>

namespace capgate::egress {

// Parts of the target itself.
struct Target {
  std::string_view authority;
  std::string_view path;        // empty for CONNECT; "/" where an absolute target has none
  std::string_view path_query;  // as sent: empty, or only a query, where an absolute target says so
};
[[nodiscard]] std::optional<Target> parse_target(std::string_view method, std::string_view target);

}  // namespace capgate::egress
