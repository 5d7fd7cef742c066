// Text inside HTML and SVG: the five characters that could end it or start a tag. Control and
// bidirectional characters are gone by then (escape_for_terminal).
#pragma once

#include <string>
#include <string_view>

namespace capgate::review {

[[nodiscard]] std::string escape_markup(std::string_view text);

}  // namespace capgate::review
