// A range of bytes in a source text. Lines and columns are computed only when a person reads them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace capgate {

struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  [[nodiscard]] static constexpr Span at(std::size_t begin, std::size_t end) {
    return {.begin = static_cast<std::uint32_t>(begin), .end = static_cast<std::uint32_t>(end)};
  }
  // For what has no place in the source, such as a word of the command line.
  [[nodiscard]] static constexpr Span nowhere() { return {.begin = UINT32_MAX, .end = UINT32_MAX}; }
  friend constexpr bool operator==(Span, Span) = default;
};

}  // namespace capgate
