// A command line, cut into words as a POSIX shell does, with nothing expanded.
//
//   cut_words("deno run --allow-read='/srv/my data' main.ts")
//
// Quotes and backslashes are undone. What a shell would expand or act upon (variables, commands,
// pipes) is a mistake: what it would become is not known here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/span.h"

namespace capgate::imports {

struct Word {
  std::string text;
  Span where;
};

[[nodiscard]] Result<std::vector<Word>> cut_words(std::string_view text);

}  // namespace capgate::imports
