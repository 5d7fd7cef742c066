// Foreign text in Markdown, as the places read it where pull requests are discussed: what a
// manifest says is seen as it is, and becomes no link, no image, no HTML, no mention of a person
// and no reference to an issue or a commit.
#pragma once

#include <string>
#include <string_view>

namespace capgate::review {

// As part of a line of prose, never at its start. Control and bidirectional characters are spelled
// out.
[[nodiscard]] std::string markdown_text(std::string_view text);

// As code, which nothing inside can end.
[[nodiscard]] std::string markdown_code(std::string_view text);

}  // namespace capgate::review
