#include "review/textconv.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/describe.h"
#include "core/grammar.h"

namespace capgate::review {
namespace {

using text::Kind;
using text::Value;

constexpr std::size_t column = 40;

std::string text_at(Value object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->is(Kind::string) ? escape_for_terminal(value->text()) : "?";
}

// In its one spelling, with its meaning; as it was written where it has none, or has variables.
std::string line_of(Value item) {
  if (!item.is(Kind::string)) return "  ? (no text)";
  const auto parsed = core::parse_capability(item.text(), {});
  if (!parsed || parsed->size() != 1) return format("  {}", escape_for_terminal(item.text()));
  std::string out = format("  {}", escape_for_terminal(print(parsed->front())));
  out.append(out.size() < column ? column - out.size() : 2, ' ');
  return out + describe(parsed->front());
}

std::string lines_of(std::string_view heading, std::optional<Value> capabilities) {
  std::vector<std::string> lines;
  if (capabilities && capabilities->is(Kind::array)) {
    for (const Value item : capabilities->elements()) lines.push_back(line_of(item));
  }
  sort_and_deduplicate(lines);
  std::string out = format("{}{}\n", heading, lines.empty() ? ": nothing" : "");
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace

std::string plain_lines(const text::Document& document) {
  const Value root = document.root();
  const auto tools = root.is(Kind::object) ? root.find("tools") : std::nullopt;
  if (!tools || !tools->is(Kind::array)) return std::string(document.source());
  std::string out = format("{} {}\n", text_at(root, "name"), text_at(root, "version"));
  if (const auto seal = root.find("seal"); seal && seal->text() == "true") {
    out += "every secret is sealed\n";
  }
  if (root.find("serverCapabilities")) {
    out += lines_of("every tool", root.find("serverCapabilities"));
  }
  std::vector<std::string> blocks;
  for (const Value tool : tools->elements()) {
    if (!tool.is(Kind::object)) return std::string(document.source());
    blocks.push_back(lines_of(format("tool {}", text_at(tool, "name")), tool.find("capabilities")));
  }
  std::ranges::sort(blocks);
  for (const std::string& block : blocks) out += block;
  return out;
}

}  // namespace capgate::review
