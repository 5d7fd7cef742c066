#include "clients/pin_diff.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "clients/profile_file.h"

namespace capgate::clients {
namespace {

using text::JsonWriter;

constexpr std::string_view pinned_tools = "pinned tools";
constexpr std::string_view instructions = "instructions";

// The number and the names; empty: they were not asked for.
std::string names_of(const std::optional<std::vector<PinnedTool>>& tools) {
  if (!tools) return "";
  std::string out = format("{}", tools->size());
  for (const PinnedTool& tool : *tools) {
    out += format("{} {}", &tool == &tools->front() ? ":" : ",", quoted(tool.name));
  }
  return out;
}

void add_text(std::string_view what, const std::string& before, const std::string& after,
              std::vector<TextChange>& out) {
  if (before == after) return;
  out.push_back({.what = std::string(what), .before = before, .after = after});
}

LinesChange diff_lines(std::vector<std::string> before, std::vector<std::string> after) {
  std::ranges::sort(before);
  std::ranges::sort(after);
  LinesChange out;
  std::ranges::set_difference(after, before, std::back_inserter(out.added));
  std::ranges::set_difference(before, after, std::back_inserter(out.removed));
  return out;
}

std::string name_of(const PinnedPackage& package) {
  return format("{}:{}", package.registry, package.name);
}

// Compared as words: what is shown of two that differ may be cut or escaped to the same text.
void diff_command(const std::vector<std::string>& before, const std::vector<std::string>& after,
                  std::vector<TextChange>& out) {
  if (before == after) return;
  out.push_back(
      {.what = "command", .before = print_command(before), .after = print_command(after)});
}

void diff_package(const Pin& before, const Pin& after, std::vector<TextChange>& out) {
  const PinnedPackage nothing{};
  const PinnedPackage& a = before.package ? *before.package : nothing;
  const PinnedPackage& b = after.package ? *after.package : nothing;
  add_text("package", before.package ? name_of(a) : "", after.package ? name_of(b) : "", out);
  add_text("version of the package", a.version, b.version, out);
  add_text("integrity of the package", a.integrity, b.integrity, out);
  add_text("files of the package", a.tree, b.tree, out);
  const bool both_have_runtime = !a.runtime.empty() && !b.runtime.empty();
  if (both_have_runtime) add_text("interpreter of the package", a.runtime, b.runtime, out);
  if (!before.interpreter.empty()) {  // a lock has none
    add_text("interpreter of the command", before.interpreter, after.interpreter, out);
  }
}

std::vector<GrantsChange> diff_grants(const Pin& before, const Pin& after) {
  std::vector<GrantsChange> out;
  auto a = before.grants.begin();
  auto b = after.grants.begin();
  const auto add = [&](const std::string& tool, const std::vector<std::string>& old_lines,
                       const std::vector<std::string>& new_lines) {
    LinesChange lines = diff_lines(old_lines, new_lines);
    if (!lines.is_empty()) out.push_back({.tool = tool, .lines = std::move(lines)});
  };
  while (a != before.grants.end() || b != after.grants.end()) {
    if (b == after.grants.end() || (a != before.grants.end() && a->tool < b->tool)) {
      add(a->tool, a->capabilities, {});
      ++a;
    } else if (a == before.grants.end() || b->tool < a->tool) {
      add(b->tool, {}, b->capabilities);
      ++b;
    } else {
      add(a->tool, a->capabilities, b->capabilities);
      ++a;
      ++b;
    }
  }
  return out;
}

ToolPinChange diff_tool(const PinnedTool& before, const PinnedTool& after,
                        ToolPinChange::Kind kind) {
  ToolPinChange out{.tool = kind == ToolPinChange::Kind::removed ? before.name : after.name,
                    .kind = kind,
                    .texts = {}};
  add_text("title", before.title, after.title, out.texts);
  add_text("description", before.description, after.description, out.texts);
  add_text("input schema", before.input_schema, after.input_schema, out.texts);
  add_text("output schema", before.output_schema, after.output_schema, out.texts);
  add_text("annotations", before.annotations, after.annotations, out.texts);
  add_text("other words", before.other, after.other, out.texts);
  return out;
}

// ---- words --------------------------------------------------------------------------------------

std::string print(const LinesChange& lines, std::string_view indent) {
  std::string out;
  for (const std::string& line : lines.added) {
    out += format("{}+ {}\n", indent, escape_for_terminal(line));
  }
  for (const std::string& line : lines.removed) {
    out += format("{}- {}\n", indent, escape_for_terminal(line));
  }
  return out;
}

std::string print(const TextChange& change) {
  if (change.what == "manifest") return "the manifest is another one\n";
  if (change.what == pinned_tools) {
    return change.after.empty()
               ? format(
                     "the pins of its tools are given up: a change of them is not noticed any "
                     "more\n{}",
                     shown_text(change.before, "  - "))
               : format("its tools are pinned from now on\n{}", shown_text(change.after, "  + "));
  }
  if (change.what == instructions) {
    return "its instructions changed\n" + text_diff(change.before, change.after, "  ");
  }
  const auto shown = [](const std::string& text) {
    return text.empty() ? std::string("none") : escape_for_terminal(text);
  };
  return format("{}:\n  - {}\n  + {}\n", change.what, shown(change.before), shown(change.after));
}

std::string print(const ToolPinChange& change) {
  using enum ToolPinChange::Kind;
  const std::string name = quoted(change.tool);
  std::string out;
  switch (change.kind) {
    case added: out = format("tool {} is new\n", name); break;
    case removed: return format("tool {} is gone\n", name);
    case changed: break;
  }
  for (const TextChange& text : change.texts) {
    if (change.kind == added) {
      out += format("  its {}:\n{}", text.what, shown_text(text.after, "    + "));
    } else {
      out += format("tool {}: its {} changed\n", name, text.what);
      out += text_diff(text.before, text.after, "  ");
    }
  }
  return out;
}

void write_lines(const LinesChange& lines, JsonWriter& json) {
  json.key("added").begin_array();
  for (const std::string& line : lines.added) json.string(line);
  json.end_array().key("removed").begin_array();
  for (const std::string& line : lines.removed) json.string(line);
  json.end_array();
}

void write_texts(const std::vector<TextChange>& texts, JsonWriter& json) {
  json.begin_array();
  for (const TextChange& text : texts) {
    json.begin_object().key("what").string(text.what).key("before").string(text.before);
    json.key("after").string(text.after).end_object();
  }
  json.end_array();
}

std::string_view name_of(ToolPinChange::Kind kind) {
  switch (kind) {
    case ToolPinChange::Kind::added: return "added";
    case ToolPinChange::Kind::removed: return "removed";
    case ToolPinChange::Kind::changed: return "changed";
  }
  return "";
}

}  // namespace

std::vector<ToolPinChange> diff_tools(const std::vector<PinnedTool>& before,
                                      const std::vector<PinnedTool>& after) {
  using enum ToolPinChange::Kind;
  std::vector<ToolPinChange> out;
  auto a = before.begin();
  auto b = after.begin();
  while (a != before.end() || b != after.end()) {
    if (b == after.end() || (a != before.end() && a->name < b->name)) {
      out.push_back(diff_tool(*a++, {}, removed));
    } else if (a == before.end() || b->name < a->name) {
      out.push_back(diff_tool({}, *b++, added));
    } else {
      if (*a != *b) out.push_back(diff_tool(*a, *b, changed));
      ++a;
      ++b;
    }
  }
  return out;
}

PinDiff diff(const Pin& before, const Pin& after) {
  PinDiff out;
  add_text("manifest", before.manifest_hash, after.manifest_hash, out.texts);
  diff_command(before.command, after.command, out.texts);
  diff_package(before, after, out.texts);
  if (before.tools && after.tools) {
    add_text("protocol", before.protocol, after.protocol, out.texts);
    // A pin of an earlier version has none, and what nobody saw is no text that was approved.
    add_text(instructions, before.instructions.value_or(""), after.instructions.value_or(""),
             out.texts);
    if (before.declares && after.declares) {
      out.declares = diff_lines(*before.declares, *after.declares);
    }
    out.tools = diff_tools(*before.tools, *after.tools);
  } else {
    add_text(pinned_tools, names_of(before.tools), names_of(after.tools), out.texts);
  }
  out.policy = diff_lines(before.policy, after.policy);
  out.grants = diff_grants(before, after);
  // What all tools have now and one had before, or the other way round: no change of the whole.
  LinesChange shared = diff_lines(before.shared, after.shared);
  std::erase_if(shared.added, [&](const auto& line) { return contains(out.policy.added, line); });
  std::erase_if(shared.removed,
                [&](const auto& line) { return contains(out.policy.removed, line); });
  if (!shared.is_empty()) out.grants.push_back({.tool = "", .lines = std::move(shared)});
  return out;
}

std::string print(const std::vector<ToolPinChange>& tools) {
  std::string out;
  for (const ToolPinChange& tool : tools) out += print(tool);
  return out;
}

std::string print(const PinDiff& change) {
  std::string out;
  if (!change.policy.is_empty()) out += "policy:\n" + print(change.policy, "  ");
  for (const GrantsChange& grants : change.grants) {
    const std::string who =
        grants.tool.empty() ? std::string("all tools") : format("tool {}", quoted(grants.tool));
    out += format("{} by the manifest:\n{}", who, print(grants.lines, "  "));
  }
  for (const TextChange& text : change.texts) out += print(text);
  if (!change.declares.is_empty()) {
    out += "it declares to have:\n" + print(change.declares, "  ");
  }
  return out + print(change.tools);
}

void write_json(const PinDiff& change, JsonWriter& json) {
  json.begin_object();
  write_texts(change.texts, json.key("texts"));
  write_lines(change.policy, json.key("policy").begin_object());
  json.end_object().key("grants").begin_array();
  for (const GrantsChange& grants : change.grants) {
    json.begin_object().key("tool").string(grants.tool);
    write_lines(grants.lines, json);
    json.end_object();
  }
  json.end_array();
  write_lines(change.declares, json.key("declares").begin_object());
  json.end_object().key("tools").begin_array();
  for (const ToolPinChange& tool : change.tools) {
    json.begin_object().key("tool").string(tool.tool).key("change").string(name_of(tool.kind));
    write_texts(tool.texts, json.key("texts"));
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace capgate::clients
