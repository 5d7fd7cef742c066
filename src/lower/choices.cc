#include "lower/choices.h"

#include <algorithm>

#include "base/text.h"
#include "core/path.h"

namespace capgate::lower {

bool is_user(std::string_view text) {
  const auto parts = split(text, ':');
  return parts.size() == 2 && std::ranges::all_of(parts, [](std::string_view part) {
           return parse_decimal(part).has_value();
         });
}

std::optional<std::string> program_path(std::string_view text) {
  auto path = core::parse_plain_path(text);
  if (!path || *path == "/") return {};
  return *std::move(path);
}

}  // namespace capgate::lower
