// The one inner loop that reading and writing JSON share: text that a string may hold as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace capgate::text {

// A quote, a backslash and the control characters cannot stand in a JSON string as they are.
[[nodiscard]] constexpr bool needs_escape(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

// True if one of the eight bytes of `word` needs an escape. Subtracting borrows into the top bit of
// exactly the bytes that are too small; a byte equals another one where their difference is zero.
[[nodiscard]] constexpr bool any_needs_escape(std::uint64_t word) {
  constexpr std::uint64_t ones = 0x0101010101010101U;
  constexpr std::uint64_t tops = ones * 0x80;
  const std::uint64_t quotes = word ^ (ones * '"');
  const std::uint64_t backslashes = word ^ (ones * '\\');
  return ((((word - ones * 0x20) & ~word) | ((quotes - ones) & ~quotes) |
           ((backslashes - ones) & ~backslashes)) &
          tops) != 0;
}

[[nodiscard]] inline std::uint64_t load_word(const char* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// How many bytes at the start of `text` need no escape.
[[nodiscard]] inline std::size_t plain_length(std::string_view text) {
  constexpr std::size_t step = sizeof(std::uint64_t);
  std::size_t at = 0;
  while (at + step <= text.size() && !any_needs_escape(load_word(text.data() + at))) at += step;
  while (at < text.size() && !needs_escape(text[at])) ++at;
  return at;
}

// Sixteen bytes that the compiler compares at once, on every processor.
using Bytes = unsigned char __attribute__((vector_size(16)));

[[nodiscard]] inline bool any_needs_escape(const Bytes& bytes) {
  const auto found = (bytes < 0x20) | (bytes == '"') | (bytes == '\\');
  std::uint64_t halves[2];
  std::memcpy(halves, &found, sizeof(halves));
  return (halves[0] | halves[1]) != 0;
}

// Copies `text` if it is plain. It has at least as many bytes as a Part and at most as many as two,
// so two Parts that may overlap cover it; a Whole holds both.
template <typename Part, typename Whole>
[[nodiscard]] bool copy_if_plain(std::string_view text, char* to) {
  static_assert(sizeof(Whole) == 2 * sizeof(Part));
  Part parts[2];
  const char* const from = text.data();
  const std::size_t last = text.size() - sizeof(Part);
  std::memcpy(&parts[0], from, sizeof(Part));
  std::memcpy(&parts[1], from + last, sizeof(Part));
  Whole whole;
  std::memcpy(&whole, parts, sizeof(whole));
  if (any_needs_escape(whole)) return false;
  std::memcpy(to, &parts[0], sizeof(Part));
  std::memcpy(to + last, &parts[1], sizeof(Part));
  return true;
}

// The same while copying them: `to` has room for all of `text`. Most texts are options and paths,
// so the short ones are worth a branch each.
[[nodiscard]] inline std::size_t copy_plain(std::string_view text, char* to) {
  std::size_t at = 0;
  if (text.size() >= sizeof(Bytes)) {
    Bytes bytes;
    const std::size_t last = text.size() - sizeof(bytes);
    for (;; at = at + sizeof(bytes) < last ? at + sizeof(bytes) : last) {
      std::memcpy(&bytes, text.data() + at, sizeof(bytes));
      if (any_needs_escape(bytes)) break;
      std::memcpy(to + at, &bytes, sizeof(bytes));
      if (at == last) return text.size();
    }
  } else if (text.size() >= 8) {
    if (copy_if_plain<std::uint64_t, Bytes>(text, to)) return text.size();
  } else if (text.size() >= 4) {
    if (copy_if_plain<std::uint32_t, std::uint64_t>(text, to)) return text.size();
  }
  for (; at < text.size() && !needs_escape(text[at]); ++at) {
    to[at] = text[at];
  }
  return at;
}

}  // namespace capgate::text
