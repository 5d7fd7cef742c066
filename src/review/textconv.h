// A manifest as plain lines, for `git diff` and `git log -p`: what each tool may do, in a fixed
// order and spelling, so that only a change of what is granted is a change of the text.
//
//   server-github 0.6.2
//   tool search_code
//     fs:read:/workspace/**             read and list /workspace and everything below it
//
// A text that is no manifest is given back as it is: a difference must be shown of broken files
// too.
#pragma once

#include <string>

#include "text/document.h"

namespace capgate::review {

[[nodiscard]] std::string plain_lines(const text::Document& document);

}  // namespace capgate::review
