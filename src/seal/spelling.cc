#include "seal/spelling.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/digest.h"
#include "base/text.h"

namespace capgate::seal {
namespace {

constexpr std::string_view upper_digits = "0123456789ABCDEF";
constexpr std::string_view lower_digits = "0123456789abcdef";

bool is_unreserved(char c) { return is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~'; }

void append_hex(std::string& out, char c, std::string_view digits) {
  const auto byte = static_cast<unsigned char>(c);
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The letter of the two-character escape, 0 if there is none.
char short_escape(char c) {
  switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
  }
}

int base64_value(char c) {
  if (is_upper(c)) return c - 'A';
  if (is_lower(c)) return c - 'a' + 26;
  if (is_digit(c)) return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

Wiped::~Wiped() { wipe_all(text_); }

std::string percent_encoded(std::string_view text, HexCase hex) {
  std::string out;
  out.reserve(3 * text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    out += '%';
    append_hex(out, c, hex == HexCase::upper ? upper_digits : lower_digits);
  }
  return out;
}

std::string hex_encoded(std::string_view text, HexCase hex) {
  std::string out;
  out.reserve(2 * text.size());
  for (const char c : text) append_hex(out, c, hex == HexCase::upper ? upper_digits : lower_digits);
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  if (!text.contains('%')) return std::nullopt;
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_escape = text[at] == '%' && at + 2 < text.size() &&
                           hex_value(text[at + 1]) >= 0 && hex_value(text[at + 2]) >= 0;
    if (!is_escape) {
      out += text[at];
      continue;
    }
    out += static_cast<char>(hex_value(text[at + 1]) * 16 + hex_value(text[at + 2]));
    at += 2;
  }
  if (out.size() == text.size()) return std::nullopt;
  return out;
}

std::string json_escaped(std::string_view text, Slash slash) {
  std::string out;
  out.reserve(6 * text.size());
  for (const char c : text) {
    if (const char letter = short_escape(c)) {
      out += '\\';
      out += letter;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      append_hex(out, c, lower_digits);
    } else {
      if (c == '/' && slash == Slash::escaped) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string base64_inside(std::string_view text, std::size_t before, Alphabet alphabet) {
  std::string padded;
  padded.reserve(before + text.size());
  padded.append(before, '\0').append(text);
  const Wiped group(std::move(padded));
  std::string out = base64(group.view());

  // The character i holds the bits [6i, 6i + 6).
  const std::size_t first = (8 * before + 5) / 6;
  const std::size_t last = std::max(first, 8 * group.view().size() / 6);
  secrets::wipe(std::span(out).subspan(last));
  out.resize(last);
  out.erase(0, first);
  if (alphabet == Alphabet::url_safe) {
    std::ranges::replace(out, '+', '-');
    std::ranges::replace(out, '/', '_');
  }
  return out;
}

std::optional<std::string> base64_decoded(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string_view digits = text;
  while (text.size() - digits.size() < 2 && digits.ends_with('=')) digits.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : digits) {
    const int value = base64_value(c);
    if (value < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xfff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  const bool has_bits_to_spare = count >= 6 || (bits & ((1U << count) - 1)) != 0;
  if (has_bits_to_spare) return std::nullopt;
  return out;
}

void replace_wiping(std::string& text, std::size_t at, std::size_t size, std::string_view with) {
  const std::string_view before(text);
  std::string out;
  out.reserve(text.size() - size + with.size());
  out.append(before.substr(0, at)).append(with).append(before.substr(at + size));
  text.swap(out);
  secrets::wipe(out);
}

void append_wiping(std::string& text, std::string_view more) {
  if (text.capacity() - text.size() < more.size()) {
    std::string larger;
    larger.reserve(std::max(2 * text.capacity(), text.size() + more.size()));
    larger.append(text);
    text.swap(larger);
    wipe_all(larger);
  }
  text.append(more);
}

void assign_wiping(std::string& text, std::string_view with) {
  text.clear();
  append_wiping(text, with);
}

void wipe_all(std::string& text) {
  text.resize(text.capacity());
  secrets::wipe(text);
}

}  // namespace capgate::seal
