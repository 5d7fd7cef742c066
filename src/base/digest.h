// SHA-256 and base64, as text. Both are pure (docs/adr/0004).
//
//   sha256_hex("abc") -> "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
//   base64("abc")     -> "YWJj"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace capgate {

[[nodiscard]] std::string sha256_hex(std::string_view bytes);
// The same into room that is there already: 64 characters.
void sha256_hex(std::string_view bytes, std::span<char, 64> hex);
// The same without the processor's own instructions, as on a processor that has none.
[[nodiscard]] std::string sha256_hex_portable(std::string_view bytes);
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace capgate
