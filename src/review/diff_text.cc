#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "review/diff_print.h"

namespace capgate::review {
namespace {

using Kind = core::GrantChange::Kind;
using Presence = core::ToolChange::Presence;

std::string_view code_of(Kind kind) {
  switch (kind) {
    case Kind::widened: return "31";   // red
    case Kind::narrowed: return "32";  // green
    case Kind::moved: return "33";     // yellow
  }
  return "0";
}

std::string painted(std::string_view text, std::string_view code, Colour colour) {
  if (colour == Colour::off) return std::string(text);
  return format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string sign_of(Kind kind, Colour colour) {
  const std::string_view sign = kind == Kind::widened ? "+" : kind == Kind::moved ? "~" : "-";
  return painted(sign, code_of(kind), colour);
}

std::string place_of(const ShownPlace& place) {
  std::string out;
  if (!place.name.empty()) {
    out = format("{}:{}:{} ", escape_for_terminal(place.name), place.position.line,
                 place.position.column);
  }
  out += place.tool.empty() ? "(every tool)" : format("({})", escape_for_terminal(place.tool));
  return out;
}

void write_change(const ShownChange& change, Colour colour, std::string& out) {
  constexpr std::size_t most_places = 5;
  out += format("  {} {}\n", sign_of(change.kind, colour), escape_for_terminal(change.sentence));
  out += format("      {}\n", escape_for_terminal(change.capability));
  const std::string& other =
      change.side == core::GrantChange::Side::after ? change.before : change.after;
  if (!other.empty()) {
    out += format("      {} {}\n",
                  change.kind == Kind::narrowed ? "now:" : "before:", escape_for_terminal(other));
  }
  for (std::size_t i = 0; i < std::min(change.places.size(), most_places); ++i) {
    out += format("      at {}\n", place_of(change.places[i]));
  }
  if (change.places.size() > most_places) {
    out += format("      and {} more places\n", change.places.size() - most_places);
  }
}

void write_group(const ShownServer& server, Kind kind, std::string_view title, Colour colour,
                 std::string& out) {
  bool first = true;
  for (const ShownChange& change : server.changes) {
    if (change.kind != kind) continue;
    if (first) out += format("{}\n", painted(title, code_of(kind), colour));
    first = false;
    write_change(change, colour, out);
  }
}

void write_tool(const ShownTool& tool, Colour colour, std::string& out) {
  constexpr std::string_view notes[] = {"", " (new)", " (gone)", ""};
  const std::string name =
      tool.presence == Presence::every ? "every tool" : escape_for_terminal(tool.name);
  out += format("  {}{}\n", name, notes[static_cast<std::size_t>(tool.presence)]);
  for (const ShownChange& change : tool.changes) {
    out += format("    {} {}{}\n", sign_of(change.kind, colour),
                  escape_for_terminal(change.is_grant ? change.capability : change.sentence),
                  change.kind == Kind::moved ? "  (the server could already)" : "");
  }
}

void write_parts(const ShownServer& server, ShownPart::Kind kind, Colour colour, std::string& out) {
  constexpr std::size_t most_parts = 200;
  constexpr std::string_view titles[] = {"Widened:", "Differs, and nobody can say which way:",
                                         "Narrowed:", "Also changed, and no permission:"};
  constexpr std::string_view codes[] = {"31", "33", "32", "0"};
  const auto index = static_cast<std::size_t>(kind);
  std::size_t count = 0;
  for (const ShownPart& part : server.parts) {
    if (part.kind != kind) continue;
    if (count == 0) out += format("{}\n", painted(titles[index], codes[index], colour));
    if (++count > most_parts) continue;
    const std::string_view sign = part.before.empty() ? "+" : part.after.empty() ? "-" : "~";
    out += format("  {} {}\n", painted(sign, codes[index], colour),
                  escape_for_terminal(part_words(part)));
    const std::string cause = part_cause(part);
    if (!cause.empty()) out += format("      {}\n", escape_for_terminal(cause));
  }
  if (count > most_parts) out += format("  and {} more\n", count - most_parts);
}

}  // namespace

std::string diff_text(std::span<const ShownServer> servers, Colour colour) {
  std::string out;
  for (const ShownServer& server : servers) {
    const bool wider = may_widen(server.verdict);
    const std::string words = verdict_words(server, quoted(server.name));
    out += format("{}{}\n", out.empty() ? "" : "\n",
                  painted("This change " + words, wider ? "1;31" : "1", colour));
    write_group(server, Kind::widened, "Widened:", colour, out);
    write_group(server, Kind::narrowed, "Narrowed:", colour, out);
    if (!server.tools.empty()) out += "Per tool:\n";
    for (const ShownTool& tool : server.tools) write_tool(tool, colour, out);
    using enum ShownPart::Kind;
    for (const auto kind : {widened, differs, narrowed, told}) {
      write_parts(server, kind, colour, out);
    }
  }
  return out;
}

}  // namespace capgate::review
