#include "secrets/token_json.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/format.h"
#include "base/text.h"

namespace capgate::secrets {
namespace {

constexpr std::size_t deepest = 16;

bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::optional<unsigned> hexadecimal(std::string_view digits) {
  unsigned out = 0;
  for (const char c : digits) {
    const char lower = to_lower(c);
    const bool is_letter = lower >= 'a' && lower <= 'f';
    if (!is_digit(c) && !is_letter) return std::nullopt;
    out = out * 16 + static_cast<unsigned>(is_letter ? lower - 'a' + 10 : c - '0');
  }
  return out;
}

// A cursor over one object. Strings lose their escapes where they stand: none gets longer.
class Scanner {
 public:
  explicit Scanner(std::span<char> text) : text_(text) {}

  [[nodiscard]] bool skip(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  [[nodiscard]] bool is_at_end() {
    skip_space();
    return at_ == text_.size();
  }

  [[nodiscard]] std::optional<std::string_view> string() {
    if (!skip('"')) return std::nullopt;
    const std::size_t begin = at_;
    std::size_t to = begin;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return std::nullopt;
      if (text_[at_] != '\\') {
        text_[to++] = text_[at_++];
      } else if (!escape(to)) {
        return std::nullopt;
      }
    }
    if (at_ == text_.size()) return std::nullopt;
    ++at_;
    return std::string_view(text_.data() + begin, to - begin);
  }

  // A number or a word, as it is written.
  [[nodiscard]] std::string_view plain() {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (is_alnum(text_[at_]) || text_[at_] == '-' || text_[at_] == '+' || text_[at_] == '.')) {
      ++at_;
    }
    return {text_.data() + begin, at_ - begin};
  }

  [[nodiscard]] bool skip_value(std::size_t depth = 0) {
    skip_space();
    if (at_ == text_.size() || depth == deepest) return false;
    if (text_[at_] == '"') return string().has_value();
    if (text_[at_] != '{' && text_[at_] != '[') return !plain().empty();
    const bool is_object = text_[at_++] == '{';
    const char end = is_object ? '}' : ']';
    if (skip(end)) return true;
    do {
      if (is_object && (!string() || !skip(':'))) return false;
      if (!skip_value(depth + 1)) return false;
    } while (skip(','));
    return skip(end);
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
  }

  std::optional<unsigned> code_unit() {
    if (text_.size() - at_ < 6 || text_[at_] != '\\' || text_[at_ + 1] != 'u') return std::nullopt;
    const auto out = hexadecimal({text_.data() + at_ + 2, 4});
    at_ += 6;
    return out;
  }

  bool escape(std::size_t& to) {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
    if (text_.size() - at_ < 2) return false;
    const std::size_t known = names.find(text_[at_ + 1]);
    if (known != std::string_view::npos) {
      text_[to++] = meant[known];
      at_ += 2;
      return true;
    }
    const auto unit = code_unit();
    if (!unit || (*unit >= 0xdc00 && *unit < 0xe000)) return false;
    char32_t point = *unit;
    if (point >= 0xd800 && point < 0xdc00) {
      const auto low = code_unit();
      if (!low || *low < 0xdc00 || *low >= 0xe000) return false;
      point = 0x10000 + ((point - 0xd800) << 10U) + (*low - 0xdc00);
    }
    std::string encoded;  // at most four bytes: within the object itself
    append_utf8(encoded, point);
    encoded.copy(text_.data() + to, encoded.size());
    to += encoded.size();
    wipe(encoded);
    return true;
  }

  std::span<char> text_;
  std::size_t at_ = 0;
};

struct Found {
  std::optional<std::string_view> value;
  std::optional<std::int64_t> expires;
};

// False: not of this shape, or a member stands there twice.
bool read_member(Scanner& scanner, std::int64_t now, Found& found) {
  const auto key = scanner.string();
  if (!key || !scanner.skip(':')) return false;
  if (*key == "value") {
    if (found.value) return false;
    found.value = scanner.string();
    return found.value.has_value();
  }
  if (*key == "expires") {
    if (found.expires) return false;
    const auto text = scanner.string();
    found.expires = text ? parse_time(*text) : std::nullopt;
    return found.expires.has_value();
  }
  if (*key == "expires_in") {
    constexpr std::uint64_t most_seconds = std::uint64_t{100} * 366 * 86400;
    const auto seconds = parse_decimal(scanner.plain());
    if (found.expires || !seconds || *seconds > most_seconds) return false;
    found.expires = now + static_cast<std::int64_t>(*seconds);
    return true;
  }
  return scanner.skip_value();
}

std::optional<int> number(std::string_view text, std::size_t at, std::size_t size) {
  int out = 0;
  for (const char c : text.substr(at, size)) {
    if (!is_digit(c)) return std::nullopt;
    out = out * 10 + (c - '0');
  }
  return out;
}

// "Z", "+02:00": seconds east of Greenwich.
std::optional<int> parse_offset(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const auto hours = number(text, 1, 2);
  const auto minutes = number(text, 4, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const int seconds = *hours * 3600 + *minutes * 60;
  return text[0] == '-' ? -seconds : seconds;
}

}  // namespace

std::optional<std::int64_t> parse_time(std::string_view text) {
  constexpr std::string_view shape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() <= shape.size()) return std::nullopt;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool fits = shape[i] == 'd'   ? is_digit(text[i])
                      : shape[i] == 'T' ? text[i] == 'T' || text[i] == 't' || text[i] == ' '
                                        : text[i] == shape[i];
    if (!fits) return std::nullopt;
  }
  const auto field = [&](std::size_t at, std::size_t size = 2) { return *number(text, at, size); };
  using namespace std::chrono;
  const year_month_day date(year(field(0, 4)), month(static_cast<unsigned>(field(5))),
                            day(static_cast<unsigned>(field(8))));
  if (!date.ok() || field(11) > 23 || field(14) > 59 || field(17) > 60) return std::nullopt;
  std::string_view rest = text.substr(shape.size());
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    if (rest.empty() || !is_digit(rest.front())) return std::nullopt;
    while (!rest.empty() && is_digit(rest.front())) rest.remove_prefix(1);
  }
  const auto offset = parse_offset(rest);
  if (!offset) return std::nullopt;
  const std::int64_t day_start = sys_days(date).time_since_epoch().count() * std::int64_t{86400};
  return day_start + std::int64_t{field(11)} * 3600 + std::int64_t{field(14)} * 60 + field(17) -
         *offset;
}

std::expected<Token, std::string> read_token(Secret printed, std::int64_t now) {
  Scanner scanner(printed.bytes());
  Found found;
  bool is_valid = scanner.skip('{');
  do {
    is_valid = is_valid && read_member(scanner, now, found);
  } while (is_valid && scanner.skip(','));
  if (!is_valid || !scanner.skip('}') || !scanner.is_at_end() || !found.value || !found.expires) {
    return std::unexpected(
        std::string(R"(it must print {"value": "...", "expires": "2026-11-15T12:00:00Z"} or )"
                    R"({"value": "...", "expires_in": 3600})"));
  }
  auto value = Secret::make(*found.value);
  if (!value) return std::unexpected(format("cannot lock memory: {}", std::strerror(errno)));
  return Token{.value = *std::move(value), .expires = *found.expires};
}

}  // namespace capgate::secrets
