// Text in a drawing that measures nothing: widths are estimated in columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace capgate::review {

// Columns of a fixed-width font: two for the characters of East Asia and for symbols beyond.
[[nodiscard]] std::size_t columns_of(std::string_view text);

// At most `most` lines of `width` columns; too long a text loses its middle. Breaks after a
// character that separates, if there is one in the second half of the line.
[[nodiscard]] std::vector<std::string> wrap_text(std::string_view text, std::size_t width,
                                                 std::size_t most);

}  // namespace capgate::review
