// Replacements in a text, made all at once. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/span.h"

namespace capgate::clients {

struct Edit {
  Span where;  // empty: an insertion
  std::string text;

  friend bool operator==(const Edit&, const Edit&) = default;
};

// Edits that touch the same bytes are an error; their order does not matter.
[[nodiscard]] Result<std::string> apply_edits(std::string_view text, std::vector<Edit> edits);

}  // namespace capgate::clients
