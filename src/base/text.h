// Small, exact helpers on text. Everything is byte-wise and independent of any locale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capgate {

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr bool is_alpha(char c) { return is_lower(c) || is_upper(c); }
[[nodiscard]] constexpr bool is_alnum(char c) { return is_alpha(c) || is_digit(c); }
[[nodiscard]] constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
[[nodiscard]] constexpr bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}
[[nodiscard]] constexpr bool is_printable_ascii(char c) { return c >= ' ' && c <= '~'; }
[[nodiscard]] constexpr char to_lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

// Like text.find_first_of(characters, from), which calls memchr for every byte of `text`.
[[nodiscard]] constexpr std::size_t find_any(std::string_view text, std::string_view characters,
                                             std::size_t from = 0) {
  for (std::size_t at = from; at < text.size(); ++at) {
    for (const char c : characters) {
      if (text[at] == c) return at;
    }
  }
  return std::string_view::npos;
}

[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

// The same parts one after the other, for range-for: nothing is allocated.
class EachPart {
 public:
  EachPart(std::string_view text, char separator) : text_(text), separator_(separator) {}

  class Iterator {
   public:
    Iterator(std::string_view rest, char separator)
        : rest_(rest), size_(rest.find(separator)), separator_(separator) {}
    std::string_view operator*() const { return rest_.substr(0, size_); }
    Iterator& operator++() {
      at_end_ = size_ == std::string_view::npos;
      if (!at_end_) *this = Iterator(rest_.substr(size_ + 1), separator_);
      return *this;
    }
    friend bool operator==(const Iterator& a, std::default_sentinel_t) { return a.at_end_; }

   private:
    std::string_view rest_;
    std::size_t size_;
    char separator_;
    bool at_end_ = false;
  };
  [[nodiscard]] Iterator begin() const { return {text_, separator_}; }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

 private:
  std::string_view text_;
  char separator_;
};
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);

// Digits only: no sign, no space, no leading zero (but "0" itself), no overflow.
[[nodiscard]] std::optional<std::uint64_t> parse_decimal(std::string_view text);

// Length of the valid UTF-8 sequence that `text` starts with, 0 if there is none. Overlong forms,
// surrogates and code points above U+10FFFF are not valid.
[[nodiscard]] std::size_t utf8_length(std::string_view text);
// Offset of the first byte that is not valid UTF-8, if any.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t code_point);

// Foreign text for a terminal or a log: control characters and DEL as \xNN, invalid UTF-8 as \xNN,
// bidirectional and zero-width format characters as \u{NNNN}, so that what is seen is what is
// there.
[[nodiscard]] std::string escape_for_terminal(std::string_view text);

// Foreign text inside a message: escaped, cut to a readable length, in double quotes.
[[nodiscard]] std::string quoted(std::string_view text);

// The candidate closest to `word` (for "did you mean"), if one is close enough to be a likely slip.
[[nodiscard]] std::optional<std::string_view> closest(std::string_view word,
                                                      std::span<const std::string_view> candidates);

}  // namespace capgate
