#include "base/text.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/format.h"

namespace capgate {
namespace {

struct CodePoints {
  char32_t first;
  char32_t last;
};

// Characters that change how the text around them is shown, or are not shown at all: the C1
// controls, separators, bidirectional controls, and Unicode's Default_Ignorable_Code_Point.
constexpr CodePoints deceptive[] = {
    {0x80, 0x9f},       {0xad, 0xad},       {0x034f, 0x034f},   {0x061c, 0x061c}, {0x115f, 0x1160},
    {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e}, {0x2060, 0x206f},
    {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool is_deceptive(char32_t c) {
  return std::ranges::any_of(deceptive, [&](CodePoints r) { return c >= r.first && c <= r.last; });
}

char32_t decode(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  switch (sequence.size()) {
    case 1: return byte(0);
    case 2: return ((byte(0) & 0x1fU) << 6) | (byte(1) & 0x3fU);
    case 3: return ((byte(0) & 0x0fU) << 12) | ((byte(1) & 0x3fU) << 6) | (byte(2) & 0x3fU);
    default:
      return ((byte(0) & 0x07U) << 18) | ((byte(1) & 0x3fU) << 12) | ((byte(2) & 0x3fU) << 6) |
             (byte(3) & 0x3fU);
  }
}

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), 0U);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = to_lower(c);
  }
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (const std::string_view part : EachPart(text, separator)) {
    parts.push_back(part);
  }
  return parts;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return {};
  std::uint64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return {};
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return {};
    value = value * 10 + digit;
  }
  return value;
}

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto is_tail = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return is_tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) > 0x9f;
    return is_tail(1) && is_tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool too_large = first == 0xf4 && byte(1) > 0x8f;
    return is_tail(1) && is_tail(2) && is_tail(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    // Most text is ASCII: eight bytes at a time.
    std::uint64_t word = 0;
    while (at + sizeof(word) <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof(word));
      if ((word & 0x8080808080808080U) != 0) break;
      at += sizeof(word);
    }
    if (at == text.size()) break;
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return {};
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) {
    out += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6));
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3f));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

std::string escape_for_terminal(std::string_view text) {
  if (std::ranges::all_of(text, is_printable_ascii)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || is_control(sequence[0])) {
      out += format("\\x{:02x}", static_cast<unsigned char>(sequence[0]));
    } else if (const char32_t c = decode(sequence); is_deceptive(c)) {
      out += format("\\u{{{:04x}}}", static_cast<std::uint32_t>(c));
    } else {
      out += sequence;
    }
    text.remove_prefix(sequence.size());
  }
  return out;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 80;
  if (text.size() <= longest) return format("\"{}\"", escape_for_terminal(text));
  std::size_t cut = longest;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0U) == 0x80U) --cut;
  return format("\"{}...\"", escape_for_terminal(text.substr(0, cut)));
}

std::optional<std::string_view> closest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  // A third of the letters may be wrong; longer words are not compared at all (hostile input).
  constexpr std::size_t longest = 64;
  if (word.empty() || word.size() > longest) return {};
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(to_lower(word), to_lower(candidate));
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace capgate
