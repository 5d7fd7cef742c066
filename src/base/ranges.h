// What libstdc++ 12 does not have yet.
#pragma once

#include <algorithm>
#include <ranges>
#include <vector>

namespace capgate {

template <std::ranges::input_range Range, typename T>
[[nodiscard]] constexpr bool contains(const Range& range, const T& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

template <typename T>
void sort_and_deduplicate(std::vector<T>& items) {
  std::ranges::sort(items);
  const auto rest = std::ranges::unique(items);
  items.erase(rest.begin(), rest.end());
}

}  // namespace capgate
