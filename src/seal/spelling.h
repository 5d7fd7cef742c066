// How a value is written where it may not stand as it is, and how it is read again. Pure.
//
//   percent_encoded("a/b c")         -> "a%2Fb%20c"
//   json_escaped("a\"b")             -> "a\\\"b", without quotes
//   hex_encoded("key")               -> "6b6579"
//   base64_inside("secret", 1, ...)  -> "NlY3Jld": all base64 shows it that holds "secret" there
//
// What holds a value is not left behind: a result is never reallocated while it is made, and the
// caller wipes it (Wiped).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "secrets/secret.h"

namespace capgate::seal {

// Text that is wiped when it ends.
class Wiped {
 public:
  explicit Wiped(std::string text) : text_(std::move(text)) {}
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  Wiped(Wiped&& other) noexcept { text_.swap(other.text_); }
  Wiped& operator=(Wiped&& other) noexcept {
    text_.swap(other.text_);
    return *this;
  }
  ~Wiped();
  [[nodiscard]] std::string_view view() const { return text_; }
  [[nodiscard]] std::string& text() { return text_; }

 private:
  std::string text_;
};

// All but letters, digits and "-._~".
enum class HexCase : unsigned char { upper, lower };
[[nodiscard]] std::string percent_encoded(std::string_view text, HexCase hex = HexCase::upper);
// Every %XX as its byte, once; none if there is nothing to decode.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

// As RFC 8785 writes strings. Some writers escape the slash, too.
enum class Slash : unsigned char { plain, escaped };
[[nodiscard]] std::string json_escaped(std::string_view text, Slash slash = Slash::plain);

// Two digits for each byte.
[[nodiscard]] std::string hex_encoded(std::string_view text, HexCase hex = HexCase::lower);

// The characters that stand in the base64 of anything that holds `text` with so many bytes (0 to 2)
// before it in its group of three: those that no other byte has a share in.
enum class Alphabet : unsigned char { standard, url_safe };
[[nodiscard]] std::string base64_inside(std::string_view text, std::size_t before,
                                        Alphabet alphabet);
// Only what base64() writes: standard alphabet, padded, no bit to spare.
[[nodiscard]] std::optional<std::string> base64_decoded(std::string_view text);

// Puts `with` in the place of text[at, at + size). What stood there before is wiped.
void replace_wiping(std::string& text, std::size_t at, std::size_t size, std::string_view with);
// Memory that is given up meanwhile is wiped. What was longer before is left behind the end, for
// wipe_all() to wipe.
void append_wiping(std::string& text, std::string_view more);
void assign_wiping(std::string& text, std::string_view with);
// The memory behind its end, too.
void wipe_all(std::string& text);

}  // namespace capgate::seal
