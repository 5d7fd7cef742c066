// A text in any pieces, for what must not depend on how bytes arrive. For RapidCheck properties.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <string_view>
#include <vector>

namespace capgate::support {

[[nodiscard]] inline std::vector<std::string> any_cuts(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto size = *rc::gen::inRange<std::size_t>(0, std::min<std::size_t>(text.size(), 30) + 1);
    parts.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
    if (size == 0 && !text.empty()) {
      parts.emplace_back(text.substr(0, 1));
      text.remove_prefix(1);
    }
  }
  return parts;
}

}  // namespace capgate::support
