#include "text/json.h"

#include <algorithm>

#include "base/format.h"
#include "base/render.h"
#include "base/text.h"
#include "text/json_scan.h"

namespace capgate::text {
namespace {

std::optional<unsigned> hex_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return {};
}

std::optional<char32_t> read_hex4(std::string_view text, std::size_t at) {
  if (at + 4 > text.size()) return {};
  char32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto digit = hex_value(text[at + i]);
    if (!digit) return {};
    value = value * 16 + *digit;
  }
  return value;
}

std::optional<char> simple_escape(char c) {
  switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '/': return '/';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return {};
  }
}

bool is_high_surrogate(char32_t c) { return c >= 0xd800 && c <= 0xdbff; }
bool is_low_surrogate(char32_t c) { return c >= 0xdc00 && c <= 0xdfff; }
constexpr char32_t replacement_character = 0xfffd;
char32_t join_surrogates(char32_t high, char32_t low) {
  return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

// What a file that people write may hold besides JSON: comments, a comma after the last item,
// halves of surrogate pairs (JavaScript writes them when it cuts a text), or nothing at all.
enum class Dialect : std::uint8_t { strict, with_comments };

template <Dialect dialect>
class Parser {
 public:
  explicit Parser(SharedText source) : document_(std::move(source)), text_(document_.source()) {}

  Checked<Document> parse() {
    if (auto done = parse_text(); !done) {
      // A syntax error hides what follows it; duplicate keys before it are still worth telling.
      duplicates_.push_back(std::move(done).error());
    }
    if (duplicates_.empty()) return std::move(document_);
    sort_diagnostics(duplicates_);
    return std::unexpected(std::move(duplicates_));
  }

 private:
  static constexpr bool lenient = dialect == Dialect::with_comments;

  Result<void> parse_text() {
    TRY(check_bytes(text_));
    document_.reserve(text_.size() / 12 + 16);
    skip_space();
    if (at_ == text_.size()) {
      if constexpr (lenient) return add_scalar({.span = Span::at(at_, at_)}), Result<void>{};
      return fail(Code::doc_syntax, Span::at(at_, at_), "the document is empty",
                  "a manifest starts with an object: { \"name\": ... }");
    }
    TRY(parse_value(0));
    skip_space();
    if (at_ < text_.size()) {
      return fail(Code::doc_syntax, Span::at(at_, text_.size()),
                  "bytes after the end of the document",
                  "a JSON file holds exactly one value; remove what follows it");
    }
    return {};
  }

  Result<void> parse_value(std::size_t depth) {
    if (depth >= deepest_nesting && (peek() == '{' || peek() == '[')) {
      return fail(Code::doc_depth, Span::at(at_, at_ + 1),
                  format("nested deeper than {} levels", deepest_nesting),
                  "a manifest needs no more than a handful of levels");
    }
    switch (peek()) {
      case '{': return parse_object(depth);
      case '[': return parse_array(depth);
      case '"': return parse_string();
      case 't': return parse_word("true", Kind::boolean);
      case 'f': return parse_word("false", Kind::boolean);
      case 'n': return parse_word("null", Kind::null);
      default: break;
    }
    if (peek() == '-' || is_digit(peek())) return parse_number();
    return unexpected_token();
  }

  Result<void> parse_object(std::size_t depth) {
    const std::uint32_t self = open(Kind::object);
    std::uint32_t count = 0;
    skip_space();
    while (peek() != '}') {
      if (count > 0) TRY(expect_comma('}'));
      if (lenient && count > 0 && peek() == '}') break;
      if (peek() != '"') return expected_key();
      TRY(parse_string());
      skip_space();
      if (peek() != ':') {
        if (at_ == text_.size()) return unexpected_token();
        return fail(Code::doc_syntax, Span::at(at_, after_character()),
                    "expected ':' after the key", "write \"key\": value");
      }
      ++at_;
      skip_space();
      TRY(parse_value(depth + 1));
      skip_space();
      ++count;
    }
    ++at_;
    document_.close(self, count, at_);
    if (count > 1) report_duplicate_keys(Value(document_, self), duplicates_);
    return {};
  }

  Result<void> parse_array(std::size_t depth) {
    const std::uint32_t self = open(Kind::array);
    std::uint32_t count = 0;
    skip_space();
    while (peek() != ']') {
      if (count > 0) TRY(expect_comma(']'));
      if (lenient && count > 0 && peek() == ']') break;
      TRY(parse_value(depth + 1));
      skip_space();
      ++count;
    }
    ++at_;
    document_.close(self, count, at_);
    return {};
  }

  Result<void> parse_string() {
    const std::size_t begin = at_++;
    at_ += plain_length(text_.substr(at_));
    if (peek() == '"') {
      add_scalar({.kind = Kind::string,
                  .span = Span::at(begin, at_ + 1),
                  .text = Span::at(begin + 1, at_)});
      ++at_;
      return {};
    }
    return parse_escaped_string(begin);
  }

  Result<void> parse_escaped_string(std::size_t begin) {
    std::string decoded(text_.substr(begin + 1, at_ - begin - 1));
    while (peek() != '"') {
      if (at_ >= text_.size()) {
        return fail(Code::doc_syntax, Span::at(begin, at_), "the string is not terminated",
                    "close it with a double quote");
      }
      if (peek() == '\n') {
        return fail(Code::doc_syntax, Span::at(begin, at_), "the string does not end on its line",
                    "close it with a double quote; a line break inside is written \\n");
      }
      if (is_raw_control()) {
        return fail(Code::doc_syntax, Span::at(at_, at_ + 1), "control character in a string",
                    "write it as an escape, for example \\n");
      }
      if (peek() == '\\') {
        TRY(parse_escape(decoded));
      } else {
        decoded += text_[at_++];
      }
    }
    ++at_;
    add_scalar({.kind = Kind::string,
                .verbatim = false,
                .json_escapes = true,
                .span = Span::at(begin, at_),
                .text = document_.add_decoded(decoded)});
    return {};
  }

  Result<void> parse_escape(std::string& decoded) {
    const std::size_t begin = at_++;
    const char kind = peek();
    if (const auto plain = simple_escape(kind)) {
      decoded += *plain;
      ++at_;
      return {};
    }
    const auto unit = kind == 'u' ? read_hex4(text_, at_ + 1) : std::nullopt;
    if (!unit) {
      return fail(Code::doc_syntax, Span::at(begin, after_character()), "unknown escape",
                  "the escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four hex digits");
    }
    at_ += 5;
    if (!is_high_surrogate(*unit) && !is_low_surrogate(*unit)) {
      append_utf8(decoded, *unit);
      return {};
    }
    const bool has_partner = is_high_surrogate(*unit) && text_.substr(at_, 2) == "\\u";
    const auto low = has_partner ? read_hex4(text_, at_ + 2) : std::nullopt;
    if (!low || !is_low_surrogate(*low)) {
      if constexpr (lenient) return append_utf8(decoded, replacement_character), Result<void>{};
      return fail(Code::doc_encoding, Span::at(begin, at_), "unpaired surrogate",
                  "write both halves of the pair, or the character itself");
    }
    append_utf8(decoded, join_surrogates(*unit, *low));
    at_ += 6;
    return {};
  }

  Result<void> parse_number() {
    const std::size_t begin = at_;
    const auto skip_digits = [&] {
      const std::size_t from = at_;
      while (is_digit(peek())) ++at_;
      return at_ > from;
    };
    if (peek() == '-') ++at_;
    bool valid = peek() == '0' ? (++at_, !is_digit(peek())) : skip_digits();
    if (valid && peek() == '.') valid = (++at_, skip_digits());
    if (valid && (peek() == 'e' || peek() == 'E')) {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      valid = skip_digits();
    }
    if (!valid) {
      return fail(Code::doc_syntax, Span::at(begin, after_character()), "malformed number",
                  "a number is written like 0, -1, 2.5 or 1e9");
    }
    add_scalar({.kind = Kind::number, .span = Span::at(begin, at_), .text = Span::at(begin, at_)});
    return {};
  }

  Result<void> parse_word(std::string_view word, Kind kind) {
    if (!text_.substr(at_).starts_with(word)) return unexpected_token();
    add_scalar({.kind = kind,
                .span = Span::at(at_, at_ + word.size()),
                .text = Span::at(at_, at_ + word.size())});
    at_ += word.size();
    return {};
  }

  Result<void> expect_comma(char closing) {
    if (peek() != ',') {
      if (at_ == text_.size()) return unexpected_token();
      return fail(Code::doc_syntax, Span::at(at_, after_character()),
                  format("expected ',' or '{}'", closing), "separate the items with a comma");
    }
    const std::size_t comma = at_++;
    skip_space();
    if (!lenient && peek() == closing) {
      return fail(Code::doc_syntax, Span::at(comma, comma + 1), "trailing comma",
                  "JSON has none: remove it");
    }
    return {};
  }

  std::unexpected<Diagnostic> expected_key() const {
    if (at_ == text_.size() || peek() == '/' || peek() == '\'') return unexpected_token();
    return fail(Code::doc_syntax, Span::at(at_, after_character()),
                "expected a key in double quotes", "write \"key\": value");
  }

  std::unexpected<Diagnostic> unexpected_token() const {
    if (at_ == text_.size()) {
      return fail(Code::doc_syntax, Span::at(at_, at_), "the document ends too early",
                  "a closing bracket or a value is missing");
    }
    if (text_.substr(at_).starts_with("//") || text_.substr(at_).starts_with("/*")) {
      if constexpr (lenient) {
        return fail(Code::doc_syntax, Span::at(at_, at_ + 2), "the comment is not closed",
                    "close it with */");
      }
      return fail(Code::doc_syntax, Span::at(at_, at_ + 2), "JSON has no comments",
                  "remove it, or write the manifest in YAML");
    }
    if (peek() == '\'') {
      return fail(Code::doc_syntax, Span::at(at_, at_ + 1), "strings stand in double quotes",
                  "replace ' by \"");
    }
    return fail(Code::doc_syntax, Span::at(at_, after_character()), "expected a value",
                "a value is an object, an array, a string, a number, true, "
                "false or null");
  }

  std::uint32_t open(Kind kind) {
    const std::size_t begin = at_++;
    return document_.add({.kind = kind, .span = Span::at(begin, begin)});
  }

  void add_scalar(Node node) {
    node.next = static_cast<std::uint32_t>(document_.size() + 1);
    document_.add(node);
  }

  void skip_space() {
    skip_blanks();
    if constexpr (lenient) {
      while (skip_comment()) skip_blanks();
    }
  }

  // False where there is none, or one that is never closed: that is no token either.
  bool skip_comment() {
    if (peek() != '/') return false;
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("//")) {
      at_ = std::min(find_any(text_, "\r\n", at_), text_.size());
      return true;
    }
    const std::size_t end = rest.starts_with("/*") ? rest.find("*/", 2) : rest.npos;
    if (end == rest.npos) return false;
    at_ += end + 2;
    return true;
  }

  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  [[nodiscard]] bool is_raw_control() const {
    return static_cast<unsigned char>(text_[at_]) < 0x20;
  }
  [[nodiscard]] std::size_t after_character() const {
    return at_ + (at_ < text_.size() ? utf8_length(text_.substr(at_)) : 0);
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  Document document_;
  std::string_view text_;  // of document_: the heap buffer of its source stays where it is
  std::size_t at_ = 0;
  Diagnostics duplicates_;
};

}  // namespace

Checked<Document> parse_json(SharedText source) {
  return Parser<Dialect::strict>(std::move(source)).parse();
}

Checked<Document> parse_jsonc(SharedText source) {
  return Parser<Dialect::with_comments>(std::move(source)).parse();
}

Result<void> check_bytes(std::string_view source) {
  if (source.size() > largest_document) {
    return fail(
        Code::doc_size, Span::at(0, 0),
        format("the document has {} bytes, the limit is {}", source.size(), largest_document),
        "split the manifest, or leave out what a policy does not need");
  }
  if (source.starts_with("\xef\xbb\xbf")) {
    return fail(Code::doc_encoding, Span::at(0, 3), "the document starts with a byte order mark",
                "save it as UTF-8 without a byte order mark");
  }
  if (const auto bad = find_invalid_utf8(source)) {
    return fail(Code::doc_encoding, Span::at(*bad, *bad + 1), "invalid UTF-8",
                "save the file as UTF-8");
  }
  return {};
}

std::size_t json_string_offset(std::string_view raw, std::size_t index) {
  std::size_t at = 1;
  std::size_t decoded = 0;
  while (decoded < index && at + 1 < raw.size()) {
    if (raw[at] != '\\') {
      ++at;
      ++decoded;
      continue;
    }
    if (raw[at + 1] != 'u') {
      at += 2;
      ++decoded;
      continue;
    }
    char32_t unit = read_hex4(raw, at + 2).value_or(0);
    at += 6;
    if (is_high_surrogate(unit)) {
      unit = join_surrogates(unit, read_hex4(raw, at + 2).value_or(0xdc00));
      at += 6;
    }
    std::string utf8;
    append_utf8(utf8, unit);
    decoded += utf8.size();
  }
  return std::min(at, raw.size());
}

}  // namespace capgate::text
