#include "seal/escape.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace capgate::seal {
namespace {

using State = Escape::State;

constexpr std::size_t most_digits = 8;  // of a numeric reference, leading zeros included
constexpr std::uint32_t last_code_point = 0x10ffff;

constexpr std::size_t longest_name = 9;  // and its semicolon

struct Named {
  std::string_view name;
  char value;
};
// HTML's names of ASCII characters, without the semicolon; the most frequent ones first.
constexpr std::array<Named, 43> names = {{
    {"amp", '&'},    {"lt", '<'},     {"gt", '>'},       {"quot", '"'},   {"apos", '\''},
    {"AMP", '&'},    {"GT", '>'},     {"Hat", '^'},      {"LT", '<'},     {"NewLine", '\n'},
    {"QUOT", '"'},   {"Tab", '\t'},   {"ast", '*'},      {"bsol", '\\'},  {"colon", ':'},
    {"comma", ','},  {"commat", '@'}, {"dollar", '$'},   {"equals", '='}, {"excl", '!'},
    {"grave", '`'},  {"lbrace", '{'}, {"lbrack", '['},   {"lcub", '{'},   {"lowbar", '_'},
    {"lpar", '('},   {"lsqb", '['},   {"midast", '*'},   {"num", '#'},    {"percnt", '%'},
    {"period", '.'}, {"plus", '+'},   {"quest", '?'},    {"rbrace", '}'}, {"rbrack", ']'},
    {"rcub", '}'},   {"rpar", ')'},   {"rsqb", ']'},     {"semi", ';'},   {"sol", '/'},
    {"verbar", '|'}, {"vert", '|'},   {"UnderBar", '_'},
}};

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The characters of an escape, one after the other.
class Cursor {
 public:
  Cursor(std::string_view text, std::size_t at, Layers layers)
      : text_(text), at_(at), layers_(layers) {}

  // None where the text ends, or a layer below does not say one character.
  std::optional<char> next() {
    if (at_ >= text_.size()) return end_early();
    const char c = text_[at_];
    if (layers_ == Layers::two && begins_escape(c)) {
      const Escape below = read_escape(text_, at_, Layers::one);
      if (below.state == State::incomplete) return end_early();
      if (below.state == State::whole) {
        if (below.count != 1) return std::nullopt;
        at_ += below.size;
        return below.text[0];
      }
    }
    ++at_;
    return c;
  }
  std::optional<std::uint32_t> hex(std::size_t digits) {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const auto c = next();
      if (!c || hex_value(*c) < 0) return std::nullopt;
      out = out * 16 + static_cast<std::uint32_t>(hex_value(*c));
    }
    return out;
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] bool is_incomplete() const { return is_incomplete_; }

 private:
  std::optional<char> end_early() {
    is_incomplete_ = true;
    return std::nullopt;
  }

  std::string_view text_;
  std::size_t at_;
  Layers layers_;
  bool is_incomplete_ = false;
};

// Of the escapes by a letter alone; 0 for others.
char by_letter(char letter) {
  switch (letter) {
    case '"':
    case '\'':
    case '\\':
    case '/': return letter;
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return 0;
  }
}

bool is_surrogate(std::uint32_t unit, std::uint32_t first) {
  return unit >= first && unit < first + 0x400;
}

std::optional<std::uint32_t> read_utf16(Cursor& cursor) {
  const auto high = cursor.hex(4);
  if (!high || !is_surrogate(*high, 0xd800)) return high;
  if (cursor.next() != '\\' || cursor.next() != 'u') return std::nullopt;
  const auto low = cursor.hex(4);
  if (!low || !is_surrogate(*low, 0xdc00)) return std::nullopt;
  return 0x10000 + ((*high - 0xd800) << 10) + (*low - 0xdc00);
}

std::optional<std::uint32_t> read_backslash(Cursor& cursor) {
  const auto letter = cursor.next();
  if (!letter) return std::nullopt;
  if (*letter == 'u') return read_utf16(cursor);
  if (*letter == 'x') return cursor.hex(2);
  if (const char c = by_letter(*letter)) return static_cast<std::uint32_t>(c);
  return std::nullopt;
}

// What follows "&#".
std::optional<std::uint32_t> read_numeric(Cursor& cursor) {
  auto c = cursor.next();
  const bool is_hex = c == 'x' || c == 'X';
  if (is_hex) c = cursor.next();
  std::uint32_t out = 0;
  for (std::size_t digits = 0; c; c = cursor.next(), ++digits) {
    if (*c == ';' && digits > 0) return out;
    const int value = is_hex || is_digit(*c) ? hex_value(*c) : -1;
    if (value < 0 || digits == most_digits) return std::nullopt;
    out = out * (is_hex ? 16 : 10) + static_cast<std::uint32_t>(value);
  }
  return std::nullopt;
}

std::optional<std::uint32_t> read_reference(Cursor& cursor) {
  std::array<char, longest_name> name{};
  for (std::size_t size = 0; size < name.size(); ++size) {
    const auto c = cursor.next();
    if (size == 0 && c == '#') return read_numeric(cursor);
    if (c == ';') {
      const char named = named_character({name.data(), size});
      if (named == 0) return std::nullopt;
      return static_cast<std::uint32_t>(named);
    }
    if (!c || !is_alpha(*c)) return std::nullopt;
    name[size] = *c;
  }
  return std::nullopt;
}

void put_utf8(Escape& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.text[out.count++] = static_cast<char>(byte); };
  const auto put_rest = [&](unsigned shift) { put(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put_rest(0);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put_rest(6);
    put_rest(0);
  } else {
    put(0xf0 | code >> 18);
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }
}

Escape whole(std::uint32_t value, bool is_byte, std::size_t size) {
  Escape out{.state = State::whole, .size = size};
  if (value > last_code_point) return {};
  if (is_byte) {
    out.text[out.count++] = static_cast<char>(value);
    return out;
  }
  put_utf8(out, value);
  if (value >= 0x80 && value < 0x100) out.as_byte = static_cast<char>(value);
  return out;
}

}  // namespace

char named_character(std::string_view name) {
  if (name.empty()) return 0;
  const auto* const known = std::ranges::find_if(names, [&](const Named& named) {
    return named.name.front() == name.front() && named.name == name;
  });
  return known == names.end() ? '\0' : known->value;
}

Escape read_escape(std::string_view text, std::size_t at, Layers layers) {
  Cursor cursor(text, at, layers);
  const auto introducer = cursor.next();
  std::optional<std::uint32_t> value;
  if (introducer == '%') {
    value = cursor.hex(2);
  } else if (introducer == '\\') {
    value = read_backslash(cursor);
  } else if (introducer == '&') {
    value = read_reference(cursor);
  }
  if (value) return whole(*value, introducer == '%', cursor.at() - at);
  return {.state = cursor.is_incomplete() ? State::incomplete : State::none};
}

}  // namespace capgate::seal
