#include "lower/systemd_words.h"

#include "base/assert.h"
#include "base/format.h"
#include "base/text.h"

namespace capgate::lower {

std::string unit_word(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '%') out += '%';
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string unit_bind(std::string_view source, std::string_view destination) {
  return format("{}:{}", unit_word(source), unit_word(destination));
}

std::string unit_command(const std::vector<std::string>& words) {
  CAPGATE_ASSERT(!words.empty() && words.front().starts_with('/'));
  std::string out = ":";
  for (const std::string& word : words) {
    if (out.size() > 1) out += ' ';
    out += unit_word(word);
  }
  return out;
}

// A backslash at the end of a line would continue it.
std::string unit_prose(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '%') out += '%';
    out += is_printable_ascii(c) && c != '\\' ? c : '?';
  }
  return out;
}

}  // namespace capgate::lower
