// Any bytes at all, as a path: what the lowering to Seatbelt writes about it reads back as that
// very path, in a string, in a regular expression and as a word of the shell.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/text.h"
#include "core/path.h"
#include "lower/seatbelt_text.h"
#include "support/sbpl.h"

namespace {

using namespace capgate;

std::string read_shell_word(std::string_view word) {
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\'') {
      inside = !inside;
    } else if (!inside) {
      CAPGATE_ASSERT(word[i] == '\\' && i + 1 < word.size());
      out += word[++i];
    } else {
      out += word[i];
    }
  }
  CAPGATE_ASSERT(!inside);
  return out;
}

void check_pattern(const core::PathPattern& pattern) {
  const auto regex = sbpl::Regex::read(lower::seatbelt::entries_regex(pattern.base, pattern.glob));
  CAPGATE_ASSERT(regex.has_value());
  std::string entry = pattern.base == "/" ? "" : pattern.base;
  entry += '/';
  for (const char c : pattern.glob) entry += c == '*' ? 'x' : c;
  CAPGATE_ASSERT(regex->matches(entry) && regex->matches(entry + "/below"));
  // No path begins so.
  CAPGATE_ASSERT(!regex->matches("/\x01" + entry) || pattern.base == "/");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto pattern = core::parse_path(text);
  if (!pattern) return 0;
  if (pattern->shape == core::PathPattern::Shape::entries) check_pattern(*pattern);

  const std::string& path = pattern->base;
  const auto read = sbpl::Reader(lower::seatbelt::quote(path)).all();
  CAPGATE_ASSERT(read.has_value() && read->size() == 1 && read->front().text == path);
  const auto regex = sbpl::Regex::read("^" + lower::seatbelt::escape_regex(path) + "$");
  CAPGATE_ASSERT(regex.has_value() && regex->matches(path) && !regex->matches(path + "x"));
  CAPGATE_ASSERT(read_shell_word(lower::seatbelt::shell_word(path)) == path);
  const std::string canonical = lower::seatbelt::canonical_path(path);
  CAPGATE_ASSERT(lower::seatbelt::canonical_path(canonical) == canonical);
  return 0;
}
