#include "review/picture_text.h"

#include <algorithm>

#include "base/text.h"

namespace capgate::review {
namespace {

struct Character {
  std::string_view bytes;
  std::size_t columns = 1;
};

// The first three-byte characters that are wide are those of U+1100.
std::size_t width_of(std::string_view bytes) {
  if (bytes.size() < 3) return 1;
  const auto first = static_cast<unsigned char>(bytes[0]);
  const auto second = static_cast<unsigned char>(bytes[1]);
  if (bytes.size() == 4 || first >= 0xe3) return 2;
  return first == 0xe1 && second >= 0x84 && second < 0x88 ? 2 : 1;
}

std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> out;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    const std::string_view bytes = text.substr(0, length);
    out.push_back({.bytes = bytes, .columns = width_of(bytes)});
    text.remove_prefix(length);
  }
  return out;
}

std::size_t columns_of(const std::vector<Character>& characters) {
  std::size_t sum = 0;
  for (const Character& character : characters) sum += character.columns;
  return sum;
}

void drop_middle(std::vector<Character>& characters, std::size_t most) {
  std::size_t width = columns_of(characters);
  if (width <= most) return;
  auto first = characters.begin() + static_cast<std::ptrdiff_t>(characters.size() / 2);
  auto last = first;
  while (width + 1 > most && (first != characters.begin() || last != characters.end())) {
    const bool front =
        first != characters.begin() &&
        (last == characters.end() || first - characters.begin() > characters.end() - last);
    width -= front ? (--first)->columns : (last++)->columns;
  }
  first = characters.erase(first, last);
  characters.insert(first, {.bytes = "…"});
}

bool separates(const Character& character) {
  return character.bytes.size() == 1 &&
         std::string_view("/.,:?&= -_@").contains(character.bytes[0]);
}

}  // namespace

std::size_t columns_of(std::string_view text) { return columns_of(characters_of(text)); }

std::vector<std::string> wrap_text(std::string_view text, std::size_t width, std::size_t most) {
  std::vector<Character> rest = characters_of(text);
  // Breaking at separators may leave up to half of a line free.
  const std::size_t room = most == 1 ? width : width * most - (most - 1) * (width / 2);
  if (columns_of(rest) > width) drop_middle(rest, room);
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (at < rest.size()) {
    std::size_t end = at;
    std::size_t used = 0;
    while (end < rest.size() && used + rest[end].columns <= width) used += rest[end++].columns;
    if (end == at) ++end;  // one character is wider than the line
    if (end < rest.size()) {
      std::size_t cut = end;
      while (cut > at && !separates(rest[cut - 1])) --cut;
      if (cut > at + width / 2) end = cut;
    }
    std::string& line = lines.emplace_back();
    for (; at < end; ++at) line += rest[at].bytes;
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

}  // namespace capgate::review
