#include "base/shell.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace capgate {
namespace {

bool is_shell_safe(char c) { return is_alnum(c) || std::string_view("@%+=:,./-_~^").contains(c); }

// As $'...', where nothing that a terminal shows otherwise than it is stands for itself: no two
// words have the same text.
std::string escaped_word(std::string_view word) {
  std::string out = "$'";
  while (!word.empty()) {
    const std::string_view character = word.substr(0, std::max<std::size_t>(utf8_length(word), 1));
    if (character == "'" || character == "\\") {
      out += '\\';
      out += character;
    } else if (escape_for_terminal(character) == character) {
      out += character;
    } else {
      for (const char c : character) out += format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    word.remove_prefix(character.size());
  }
  return out + '\'';
}

}  // namespace

std::string shell_word(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_shell_safe)) return std::string(word);
  if (escape_for_terminal(word) != word) return escaped_word(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + '\'';
}

}  // namespace capgate
