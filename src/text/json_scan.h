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

[[nodiscard]] inline bool any_needs_escape_at(const char* eight_bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, eight_bytes, sizeof(word));
  return any_needs_escape(word);
}

// How many bytes at the start of `text` need no escape.
[[nodiscard]] inline std::size_t plain_length(std::string_view text) {
  constexpr std::size_t step = sizeof(std::uint64_t);
  std::size_t at = 0;
  while (at + step <= text.size() && !any_needs_escape_at(text.data() + at)) at += step;
  // What is left of a longer text is looked at together with bytes that are known to be plain.
  const bool ends_plain = text.size() >= step && at + step > text.size() &&
                          !any_needs_escape_at(text.data() + text.size() - step);
  if (ends_plain) return text.size();
  while (at < text.size() && !needs_escape(text[at])) ++at;
  return at;
}

// Copies `text` until a byte needs an escape; how many bytes that are. `to` has room for all of it.
[[nodiscard]] inline std::size_t copy_plain(std::string_view text, char* to) {
  constexpr std::size_t step = sizeof(std::uint64_t);
  std::size_t at = 0;
  for (; at + step <= text.size(); at += step) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, step);
    if (any_needs_escape(word)) break;
    std::memcpy(to + at, &word, step);
  }
  if (text.size() >= step && at + step > text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + text.size() - step, step);
    if (!any_needs_escape(word)) {
      std::memcpy(to + text.size() - step, &word, step);
      return text.size();
    }
  }
  for (; at < text.size() && !needs_escape(text[at]); ++at) to[at] = text[at];
  return at;
}

}  // namespace capgate::text
