// The reverse of base/digest.h, which the product itself never needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capgate::test {

inline std::string decode_base64(std::string_view text) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    group = (group << 6) | static_cast<std::uint32_t>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>((group >> bits) & 0xff);
  }
  return out;
}

}  // namespace capgate::test
