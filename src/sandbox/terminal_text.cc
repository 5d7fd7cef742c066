#include "sandbox/terminal_text.h"

#include <algorithm>

#include "base/text.h"

namespace capgate::sandbox {
namespace {

constexpr std::string_view own_mark = "capgate:";

bool equal_in_any_case(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, {}, [](char c) { return to_lower(c); });
}

// The bytes of a character that is not complete yet.
std::size_t unfinished_character(std::string_view text) {
  constexpr std::size_t longest = 4;
  for (std::size_t size = 1; size < longest && size <= text.size(); ++size) {
    const auto byte = static_cast<unsigned char>(text[text.size() - size]);
    if ((byte & 0xc0U) == 0x80U) continue;  // a later byte of one
    const std::size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return whole > size ? size : 0;
  }
  return 0;
}

// How many bytes at the end may be shown in one way or another, depending on what follows.
std::size_t unsure(std::string_view text) {
  if (text.ends_with('\r')) return 1;
  if (const std::size_t size = unfinished_character(text); size > 0) return size;
  for (std::size_t size = std::min(own_mark.size() - 1, text.size()); size > 0; --size) {
    if (equal_in_any_case(text.substr(text.size() - size), own_mark.substr(0, size))) return size;
  }
  return 0;
}

void show_words(std::string_view words, std::string& out) {
  const std::string escaped = escape_for_terminal(words);
  std::string_view rest = escaped;
  for (std::size_t at = 0; at + own_mark.size() <= rest.size();) {
    if (!equal_in_any_case(rest.substr(at, own_mark.size()), own_mark)) {
      ++at;
      continue;
    }
    out.append(rest.substr(0, at + own_mark.size() - 1));
    out += "\\x3a";
    rest.remove_prefix(at + own_mark.size());
    at = 0;
  }
  out.append(rest);
}

// A carriage return alone would let the next words overwrite the last ones: it ends the line.
void show(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\r\t"), text.size());
    show_words(text.substr(0, end), out);
    text.remove_prefix(end);
    if (text.empty()) return;
    if (text.starts_with("\r\n")) text.remove_prefix(1);
    out += text.front() == '\t' ? '\t' : '\n';
    text.remove_prefix(1);
  }
}

}  // namespace

void TerminalText::add(std::string_view bytes, std::string& out) {
  held_ += bytes;
  const std::size_t ready = held_.size() - unsure(held_);
  show(std::string_view(held_).substr(0, ready), out);
  held_.erase(0, ready);
}

void TerminalText::end(std::string& out) {
  show(held_, out);
  held_.clear();
}

}  // namespace capgate::sandbox
