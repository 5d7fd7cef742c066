// What the readers of HTTP share: characters and names.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace capgate::egress {

// Of RFC 9110, section 5.6.2.
[[nodiscard]] constexpr bool is_token_character(char c) {
  constexpr auto table = [] {
    std::array<bool, 256> is_token{};
    for (std::size_t i = 0; i < 128; ++i) is_token[i] = is_alnum(static_cast<char>(i));
    for (const char mark : std::string_view("!#$%&'*+-.^_`|~")) {
      is_token[static_cast<unsigned char>(mark)] = true;
    }
    return is_token;
  }();
  return table[static_cast<unsigned char>(c)];
}

[[nodiscard]] constexpr bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

[[nodiscard]] constexpr bool equal_in_any_case(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, {}, [](char c) { return to_lower(c); });
}

[[nodiscard]] constexpr std::optional<unsigned> hex_digit(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  const char lower = to_lower(c);
  if (lower >= 'a' && lower <= 'f') return static_cast<unsigned>(lower - 'a') + 10;
  return std::nullopt;
}

}  // namespace capgate::egress
