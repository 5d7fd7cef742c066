#include "text/toml_scan.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace capgate::text {
namespace {

bool is_bare(char c) { return is_alnum(c) || c == '_' || c == '-'; }

// Fits `text` to a pattern of digits (0) and other signs that stand for themselves, and drops it.
bool take_pattern(std::string_view& text, std::string_view pattern) {
  if (text.size() < pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '0' ? !is_digit(text[i]) : text[i] != pattern[i]) return false;
  }
  text.remove_prefix(pattern.size());
  return true;
}

bool take_time(std::string_view& text) {
  if (!take_pattern(text, "00:00:00")) return false;
  if (!text.starts_with('.')) return true;
  text.remove_prefix(1);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0;
}

bool is_date_or_time(std::string_view text) {
  if (!take_pattern(text, "0000-00-00")) return take_time(text) && text.empty();
  if (text.empty()) return true;
  if (text.front() != 'T' && text.front() != 't' && text.front() != ' ') return false;
  text.remove_prefix(1);
  if (!take_time(text)) return false;
  if (text.empty() || text == "Z" || text == "z") return true;
  return (take_pattern(text, "+00:00") || take_pattern(text, "-00:00")) && text.empty();
}

// Digits with single underscores between them; at least one.
bool take_digits(std::string_view& text, std::string_view digits) {
  bool after_digit = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const bool is_separator = text[at] == '_' && after_digit;
    if (!is_separator && digits.find(text[at]) == digits.npos) break;
    after_digit = !is_separator;
  }
  text.remove_prefix(at);
  return after_digit;
}

bool is_number(std::string_view text) {
  constexpr std::string_view hexadecimal = "0123456789abcdefABCDEF";
  constexpr std::string_view decimal = hexadecimal.substr(0, 10);
  std::string_view rest = text.substr(std::min<std::size_t>(text.size(), 2));
  if (text.starts_with("0x")) return take_digits(rest, hexadecimal) && rest.empty();
  if (text.starts_with("0o")) return take_digits(rest, "01234567") && rest.empty();
  if (text.starts_with("0b")) return take_digits(rest, "01") && rest.empty();
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  if (text == "inf" || text == "nan") return true;
  if (text.size() > 1 && text[0] == '0' && (is_digit(text[1]) || text[1] == '_')) return false;
  if (!take_digits(text, decimal)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!take_digits(text, decimal)) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (!take_digits(text, decimal)) return false;
  }
  return text.empty();
}

std::optional<char> simple_escape(char c) {
  switch (c) {
    case 'b': return '\b';
    case 't': return '\t';
    case 'n': return '\n';
    case 'f': return '\f';
    case 'r': return '\r';
    case '"': return '"';
    case '\\': return '\\';
    default: return {};
  }
}

std::optional<char32_t> read_hex(std::string_view digits, std::size_t count) {
  if (digits.size() < count) return {};
  char32_t value = 0;
  for (const char c : digits.substr(0, count)) {
    if (!is_digit(c) && !(to_lower(c) >= 'a' && to_lower(c) <= 'f')) return {};
    value = value * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : to_lower(c) - 'a' + 10);
  }
  const bool is_scalar = value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
  return is_scalar ? std::optional(value) : std::nullopt;
}

}  // namespace

std::unexpected<Diagnostic> TomlScanner::unexpected(std::string message, std::string help) const {
  const std::size_t end = at_end() ? at_ : at_ + utf8_length(text_.substr(at_));
  return fail(Code::doc_syntax, Span::at(std::min(at_, text_.size()), end), std::move(message),
              std::move(help));
}

bool TomlScanner::skip(std::string_view sign) {
  if (!text_.substr(at_).starts_with(sign)) return false;
  at_ += sign.size();
  return true;
}

void TomlScanner::skip_spaces() {
  while (peek() == ' ' || peek() == '\t') ++at_;
}

bool TomlScanner::skip_line_end() { return skip("\n") || skip("\r\n"); }

// A tab is the only control character that may stand in a comment or a string.
bool TomlScanner::is_refused_control() const {
  return is_control(text_[at_]) && text_[at_] != '\t';
}

Result<void> TomlScanner::skip_comment() {
  if (peek() != '#') return {};
  while (!at_end() && !is_refused_control()) ++at_;
  if (at_end() || peek() == '\n' || text_.substr(at_).starts_with("\r\n")) return {};
  return unexpected("control character in a comment", "remove it");
}

Result<void> TomlScanner::skip_lines() {
  do {
    skip_spaces();
    TRY(skip_comment());
  } while (skip_line_end());
  return {};
}

Result<void> TomlScanner::end_line() {
  skip_spaces();
  TRY(skip_comment());
  if (at_end() || skip_line_end()) return {};
  return unexpected("expected the end of the line", "one key with its value, or one header a line");
}

Result<TomlToken> TomlScanner::key_part() {
  if (peek() == '"' || peek() == '\'') return one_line_string(peek());
  const std::size_t begin = at_;
  while (is_bare(peek())) ++at_;
  if (at_ == begin) return unexpected("expected a key", "write key = value");
  return TomlToken{.span = Span::at(begin, at_), .text = Span::at(begin, at_)};
}

Result<TomlToken> TomlScanner::string() {
  const char quote = peek();
  if (text_.substr(at_).starts_with(std::string(3, quote))) return lines_string(quote);
  return one_line_string(quote);
}

Result<TomlToken> TomlScanner::one_line_string(char quote) {
  const std::size_t begin = at_++;
  TomlToken token;
  while (peek() != quote) {
    if (at_end() || is_refused_control()) {
      return unexpected("the string does not end on its line", "close it with a quote");
    }
    if (quote == '\'' || peek() != '\\') {
      token.decoded += text_[at_++];
      continue;
    }
    token.verbatim = false;
    TRY(escape(token.decoded));
  }
  if (token.verbatim) token.decoded.clear();
  token.text = Span::at(begin + 1, at_);
  token.span = Span::at(begin, ++at_);
  return token;
}

Result<void> TomlScanner::escape(std::string& decoded) {
  const char kind = text_.substr(at_).size() > 1 ? text_[at_ + 1] : '\0';
  if (const auto plain = simple_escape(kind)) {
    decoded += *plain;
    at_ += 2;
    return {};
  }
  const std::size_t digits = kind == 'u' ? 4 : 8;
  const auto code =
      kind == 'u' || kind == 'U' ? read_hex(text_.substr(at_ + 2), digits) : std::nullopt;
  if (!code) {
    return unexpected("unknown escape",
                      "the escapes are \\b \\t \\n \\f \\r \\\" \\\\, \\u and four or \\U and "
                      "eight hex digits; in single quotes a backslash is itself");
  }
  append_utf8(decoded, *code);
  at_ += 2 + digits;
  return {};
}

// A backslash at the end of a line joins it with the next one that is not blank.
bool TomlScanner::skip_folded_lines() {
  const std::size_t from = at_++;
  skip_spaces();
  if (!skip_line_end()) {
    at_ = from;
    return false;
  }
  do {
    skip_spaces();
  } while (skip_line_end());
  return true;
}

Result<void> TomlScanner::lines_character(char quote, std::string& decoded) {
  if (at_end()) return unexpected("the string is not closed", "close it with three quotes");
  if (quote == '"' && peek() == '\\') {
    return skip_folded_lines() ? Result<void>{} : escape(decoded);
  }
  if (skip_line_end()) {
    decoded += '\n';
    return {};
  }
  if (is_refused_control()) {
    return unexpected("control character in a string", "write it as an escape in double quotes");
  }
  decoded += text_[at_++];
  return {};
}

Result<TomlToken> TomlScanner::lines_string(char quote) {
  TomlToken token{.span = Span::at(at_, at_), .verbatim = false};
  const std::string closing(3, quote);
  at_ += 3;
  skip_line_end();
  while (!text_.substr(at_).starts_with(closing)) {
    TRY(lines_character(quote, token.decoded));
  }
  at_ += 3;
  // Up to two quotes more belong to the text.
  for (int i = 0; i < 2 && peek() == quote; ++i, ++at_) {
    token.decoded += quote;
  }
  token.span.end = static_cast<std::uint32_t>(at_);
  return token;
}

Result<TomlToken> TomlScanner::bare_value() {
  const std::size_t begin = at_;
  at_ = std::min(find_any(text_, " \t\r\n,#]}=", at_), text_.size());
  std::string_view word = text_.substr(begin, at_ - begin);
  // A date and its time may stand apart.
  std::string_view after = text_.substr(at_);
  std::string_view date = word;
  if (take_pattern(date, "0000-00-00") && date.empty() && take_pattern(after, " 00:")) {
    at_ = std::min(find_any(text_, " \t\r\n,#]}=", at_ + 1), text_.size());
    word = text_.substr(begin, at_ - begin);
  }
  const bool is_boolean = word == "true" || word == "false";
  if (!is_boolean && !is_number(word) && !is_date_or_time(word)) {
    at_ = begin;
    return unexpected("expected a value", "a text stands in quotes");
  }
  return TomlToken{.kind = is_boolean ? Kind::boolean : Kind::number,
                   .span = Span::at(begin, at_),
                   .text = Span::at(begin, at_)};
}

}  // namespace capgate::text
