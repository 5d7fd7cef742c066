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

// The same while copying them: `to` has room for all of `text`.
[[nodiscard]] inline std::size_t copy_plain(std::string_view text, char* to) {
  constexpr std::size_t step = sizeof(std::uint64_t);
  std::size_t at = 0;
  for (; at + step <= text.size(); at += step) {
    const std::uint64_t word = load_word(text.data() + at);
    if (any_needs_escape(word)) break;
    std::memcpy(to + at, &word, step);
  }
  // The rest of a longer text in one step, together with bytes that are there already.
  const std::size_t last = text.size() - step;
  if (text.size() >= step && at > last && !any_needs_escape(load_word(text.data() + last))) {
    std::memcpy(to + last, text.data() + last, step);
    return text.size();
  }
  for (; at < text.size() && !needs_escape(text[at]); ++at) {
    to[at] = text[at];
  }
  return at;
}

}  // namespace capgate::text
