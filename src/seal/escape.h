// Reads one escaped character, in the ways in which common libraries write them. Pure.
//
//   read_escape("%2Fb", 0, Layers::one)        -> '/', 3 bytes long
//   read_escape("\\u002f", 0, Layers::one)     -> '/', 6 bytes long
//   read_escape("&#x2F;", 0, Layers::one)      -> '/', 6 bytes long
//   read_escape("\\\\u002f", 0, Layers::two)   -> '/': JSON inside JSON
//   read_escape("&am", 0, Layers::one)         -> incomplete
//
// Known are %XX, the escapes of JSON (\n, \/, \uXXXX with surrogates), \xXX and \' of Python and
// JavaScript, and the references of HTML: decimal, hexadecimal, and the names of ASCII characters.
// With two layers, each character of an escape may itself be escaped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace capgate::seal {

enum class Layers : unsigned char { one, two };

struct Escape {
  enum class State : unsigned char { none, whole, incomplete };
  State state = State::none;
  std::array<char, 4> text{};  // what it stands for: a byte, or a character in UTF-8
  std::size_t count = 0;       // of those bytes
  std::size_t size = 0;        // of the escape
  // A server that reads fields as Latin-1 writes \u00c3 for the byte C3: then that byte, else 0.
  char as_byte = 0;

  [[nodiscard]] std::string_view view() const { return {text.data(), count}; }
};

// Each escape begins with one of these.
[[nodiscard]] constexpr bool begins_escape(char c) { return c == '%' || c == '\\' || c == '&'; }

// By HTML's name of an ASCII character, without its semicolon; 0 if it is none.
[[nodiscard]] char named_character(std::string_view name);

[[nodiscard]] Escape read_escape(std::string_view text, std::size_t at, Layers layers);

}  // namespace capgate::seal
