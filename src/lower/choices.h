// What a caller may write for single fields of Options.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace capgate::lower {

[[nodiscard]] bool is_user(std::string_view text);  // "1000:1000"

// The canonical form of an absolute path that is not "/".
[[nodiscard]] std::optional<std::string> program_path(std::string_view text);

}  // namespace capgate::lower
