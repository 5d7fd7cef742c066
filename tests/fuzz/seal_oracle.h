// The same as seal/swap.h says, in the simplest way: whole strings, one search after the other.
#pragma once

#include <string>
#include <string_view>

#include "base/assert.h"

namespace capgate::fuzz {

[[nodiscard]] inline std::string replaced(std::string text, std::string_view what,
                                          std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// Fuzzers find no 20 letters by chance: '\1' stands for the placeholder, '\2' for its first half,
// '\3' for its second half, '\4' for the value.
struct Shorthand {
  std::string_view placeholder;
  std::string_view value;
};
[[nodiscard]] inline std::string spelled_out(std::string_view text, const Shorthand& shorthand) {
  const std::size_t half = shorthand.placeholder.size() / 2;
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\1': out += shorthand.placeholder; break;
      case '\2': out += shorthand.placeholder.substr(0, half); break;
      case '\3': out += shorthand.placeholder.substr(half); break;
      case '\4': out += shorthand.value; break;
      default: out += c; break;
    }
  }
  return out;
}

}  // namespace capgate::fuzz
