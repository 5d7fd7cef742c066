#include "text/yaml_write.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "text/json_write.h"

namespace capgate::text {
namespace {

constexpr std::string_view reserved[] = {"n",    "no", "null", "off",  "on",
                                         "true", "y",  "yes",  "false"};

// Starts with a letter or '/', so it is no number, date, indicator or ".inf".
bool is_plain(std::string_view text) {
  if (text.empty() || (!is_alpha(text.front()) && text.front() != '/')) return false;
  const bool harmless = std::ranges::all_of(
      text, [](char c) { return is_alnum(c) || std::string_view("._/-+@").contains(c); });
  return harmless && std::ranges::find(reserved, to_lower(text)) == std::end(reserved);
}

std::string written(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  JsonWriter json(JsonWriter::Style::compact);
  json.string(text);
  std::string out = std::move(json).take();
  // JSON leaves these as they are; some YAML readers take them for the end of a line or refuse
  // them.
  for (const auto& [raw, escaped] : {std::pair<std::string_view, std::string_view>{"\x7f", "\\x7f"},
                                     {"\xc2\x85", "\\N"},
                                     {"\xe2\x80\xa8", "\\L"},
                                     {"\xe2\x80\xa9", "\\P"},
                                     {"\xef\xbb\xbf", "\\uFEFF"}}) {
    for (std::size_t at = out.find(raw); at != std::string::npos; at = out.find(raw, at + 1)) {
      out.replace(at, raw.size(), escaped);
    }
  }
  return out;
}

// Printable ASCII lines, the first of which does not begin with a space, each ended.
bool fits_a_block(std::string_view lines) {
  return !lines.empty() && lines.front() != ' ' && lines.front() != '\n' && lines.ends_with('\n') &&
         !lines.ends_with("\n\n") &&
         std::ranges::all_of(lines, [](char c) { return c == '\n' || is_printable_ascii(c); });
}

}  // namespace

YamlWriter& YamlWriter::key(std::string_view name) {
  begin_line();
  out_ += written(name);
  out_ += ':';
  after_ = After::key;
  return *this;
}

YamlWriter& YamlWriter::string(std::string_view text) { return scalar(written(text)); }

YamlWriter& YamlWriter::number(std::uint64_t value) { return scalar(std::to_string(value)); }

YamlWriter& YamlWriter::boolean(bool value) { return scalar(value ? "true" : "false"); }

YamlWriter& YamlWriter::block(std::string_view lines) {
  if (!fits_a_block(lines)) return string(lines);
  begin_value();
  out_ += " |\n";
  const std::string indent(open_.empty() ? 2 : open_.back().indent + 2, ' ');
  for (const std::string_view line : split(lines.substr(0, lines.size() - 1), '\n')) {
    if (!line.empty()) out_ += indent;
    out_ += line;
    out_ += '\n';
  }
  after_ = After::nothing;
  return *this;
}

YamlWriter& YamlWriter::comment(std::string_view words) {
  begin_line();
  out_ += "# ";
  for (const char c : words) out_ += is_printable_ascii(c) ? c : '?';
  out_ += '\n';
  return *this;
}

YamlWriter& YamlWriter::next_document() {
  out_ += "---\n";
  return *this;
}

YamlWriter& YamlWriter::open(char bracket) {
  begin_value();
  const unsigned indent = open_.empty() ? 0 : open_.back().indent + 2;
  open_.push_back({.bracket = bracket, .indent = indent, .after = after_});
  after_ = After::nothing;
  return *this;
}

YamlWriter& YamlWriter::close(std::string_view if_empty) {
  const Open closed = open_.back();
  open_.pop_back();
  if (!closed.empty) return *this;
  after_ = closed.after;
  out_ += closed.after == After::nothing ? "" : " ";
  out_ += if_empty;
  out_ += '\n';
  after_ = After::nothing;
  return *this;
}

YamlWriter& YamlWriter::scalar(std::string_view text) {
  begin_value();
  if (after_ != After::nothing) out_ += ' ';
  out_ += text;
  out_ += '\n';
  after_ = After::nothing;
  return *this;
}

void YamlWriter::begin_value() {
  if (open_.empty() || open_.back().bracket != '[') return;
  begin_line();
  out_ += '-';
  after_ = After::dash;
}

// The first line of a map or list goes beside its dash, or below its key.
void YamlWriter::begin_line() {
  if (open_.empty()) return;
  Open& inside = open_.back();
  const bool first = std::exchange(inside.empty, false);
  if (first && inside.after == After::dash) {
    out_ += ' ';
    return;
  }
  if (first && inside.after == After::key) out_ += '\n';
  out_.append(inside.indent, ' ');
}

}  // namespace capgate::text
