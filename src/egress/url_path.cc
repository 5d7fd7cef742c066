#include "egress/url_path.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.h"

namespace capgate::egress {
namespace {

std::optional<unsigned> hex_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  const char lower = to_lower(c);
  if (lower >= 'a' && lower <= 'f') return static_cast<unsigned>(lower - 'a') + 10;
  return {};
}

// One round of percent-decoding; nothing if it does not decode.
std::optional<std::string> decode_once(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return {};
    const auto high = hex_value(text[i + 1]);
    const auto low = hex_value(text[i + 2]);
    if (!high || !low) return {};
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

// "..;x" is ".." to servers that know path parameters.
bool is_dots(std::string_view part) {
  const std::string_view name = part.substr(0, part.find(';'));
  return name == "." || name == "..";
}

bool has_doubtful_part(std::string_view path) {
  if (std::ranges::any_of(path, [](char c) { return is_control(c) || c == '\\'; })) return true;
  if (path.contains("//")) return true;
  return std::ranges::any_of(split(path, '/'), is_dots);
}

// '*' stands for any characters. Goes back to the last star only, so it costs at most the product
// of the lengths.
bool part_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

}  // namespace

bool is_ambiguous_path(std::string_view path) {
  if (!path.starts_with('/') || has_doubtful_part(path)) return true;
  const auto slashes = std::ranges::count(path, '/');
  std::string text(path);
  // Each round makes it shorter, so it ends; one that needs many is doubtful by itself.
  for (int round = 0; text.contains('%'); ++round) {
    auto decoded = decode_once(text);
    if (!decoded) return round == 0;  // later it is a '%' that was encoded
    if (round == 4 || has_doubtful_part(*decoded)) return true;
    if (std::ranges::count(*decoded, '/') != slashes) return true;
    text = *std::move(decoded);
  }
  return false;
}

bool path_matches(std::string_view pattern, std::string_view path) {
  if (is_ambiguous_path(path)) return false;
  const auto wanted = split(pattern, '/');
  const auto given = split(path, '/');
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i >= given.size()) return false;
    if (wanted[i] == "**" && i + 1 == wanted.size()) return true;
    if (wanted[i] == "*" && given[i].empty()) return false;
    if (!part_matches(wanted[i], given[i])) return false;
  }
  return wanted.size() == given.size();
}

}  // namespace capgate::egress
