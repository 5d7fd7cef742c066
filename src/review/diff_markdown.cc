#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "review/diff_print.h"
#include "review/markdown.h"

namespace capgate::review {
namespace {

using Kind = core::GrantChange::Kind;
using Presence = core::ToolChange::Presence;

// A comment has a greatest size, and a person a greatest patience.
constexpr std::size_t most_changes = 40;
constexpr std::size_t most_tools = 40;
constexpr std::size_t most_of_a_tool = 15;
constexpr std::size_t most_servers = 20;

std::string tools_and_places(const ShownChange& change) {
  constexpr std::size_t most = 5;
  std::vector<std::string> parts;
  const std::vector<std::string> tools = tools_of(change);
  std::string names;
  for (std::size_t i = 0; i < std::min(tools.size(), most); ++i) {
    names += format("{}{}", i == 0 ? "" : ", ",
                    tools[i] == "every tool" ? tools[i] : markdown_code(tools[i]));
  }
  if (tools.size() > most) names += format(" and {} more", tools.size() - most);
  if (!names.empty()) parts.push_back("for " + names);
  const auto placed = std::ranges::find_if(
      change.places, [](const ShownPlace& place) { return !place.name.empty(); });
  if (placed != change.places.end()) {
    const bool is_after = change.side == core::GrantChange::Side::after;
    const std::string& file = placed->file.empty() ? placed->name : placed->file;
    parts.push_back(format("{} {}", is_after ? "at" : "stood at",
                           markdown_code(format("{}:{}", file, placed->position.line))));
  }
  return join(parts, ", ");
}

void write_change(const ShownChange& change, std::string& out) {
  const bool is_widened = change.kind == Kind::widened;
  out += format("- It {}{}{}\\\n", is_widened ? "**" : "", markdown_text(change.sentence),
                is_widened ? "**" : "");
  out += format("  {}", markdown_code(change.capability));
  const std::string& other =
      change.side == core::GrantChange::Side::after ? change.before : change.after;
  if (!other.empty()) {
    out +=
        format(" ({} {})", change.kind == Kind::narrowed ? "now" : "before", markdown_code(other));
  }
  const std::string where = tools_and_places(change);
  out += where.empty() ? "\n" : format(", {}\n", where);
}

// What a change is about, from what does most harm.
std::size_t danger_of(const ShownChange& change) {
  constexpr std::string_view reading = "fs:read:";
  constexpr std::array<std::string_view, 10> worst_first = {
      "exec:",       "fs:",   "net:connect:", "env:inject:", "ipc:",
      "net:listen:", reading, "env:read:",    "limit:",      "assert:"};
  const auto starts = [&](std::string_view prefix) {
    const bool other_files = prefix == "fs:" && change.capability.starts_with(reading);
    return change.capability.starts_with(prefix) && !other_files;
  };
  const auto* const found = std::ranges::find_if(worst_first, starts);
  return static_cast<std::size_t>(found - worst_first.begin());
}

using Changes = std::vector<const ShownChange*>;

// By a rank; what has the same stays in its order, which is that of the array they point into.
template <typename T, typename Rank>
void sort_stably(std::vector<const T*>& list, Rank rank) {
  std::ranges::sort(list, {}, [&](const T* each) { return std::pair(rank(each), each); });
}

// At most so many, of which nothing is hidden behind many of another sort: one of each is kept, and
// the worst come first. What fits stays in its order.
Changes most_telling(Changes changes, std::size_t most) {
  if (changes.size() <= most) return changes;
  const auto sort_of = [](const ShownChange* change) {
    constexpr std::size_t ranks[] = {0, 2, 1};  // widened, narrowed, moved
    return std::pair(ranks[static_cast<std::size_t>(change->kind)], danger_of(*change));
  };
  sort_stably(changes, sort_of);
  Changes kept;
  Changes rest;
  for (const ShownChange* change : changes) {
    const bool is_first = kept.empty() || sort_of(kept.back()) != sort_of(change);
    (is_first ? kept : rest).push_back(change);
  }
  kept.insert(kept.end(), rest.begin(), rest.end());
  kept.resize(most);
  sort_stably(kept, sort_of);
  return kept;
}

void write_group(const ShownServer& server, Kind kind, std::string_view title, std::string& out) {
  Changes changes;
  for (const ShownChange& change : server.changes) {
    if (change.kind == kind) changes.push_back(&change);
  }
  if (changes.empty()) return;
  out += format("\n### {}\n\n", title);
  for (const ShownChange* change : most_telling(changes, most_changes)) write_change(*change, out);
  if (changes.size() > most_changes) {
    out += format("- and {} more, which `capgate diff` lists\n", changes.size() - most_changes);
  }
}

std::string tool_title(const ShownTool& tool) {
  switch (tool.presence) {
    case Presence::both: return markdown_code(tool.name);
    case Presence::added: return markdown_code(tool.name) + " is new";
    case Presence::removed: return markdown_code(tool.name) + " is gone";
    case Presence::every: return "Every tool";
  }
  return {};
}

std::string tool_line(const ShownChange& change) {
  const std::string code = markdown_code(change.capability);
  if (!change.is_grant) return format("{} ({})", markdown_text(change.sentence), code);
  switch (change.kind) {
    case Kind::widened: return "**new:** " + code;
    case Kind::narrowed: return "no longer: " + code;
    case Kind::moved: return "new for this tool, the server could do it already: " + code;
  }
  return {};
}

// Tools that widened come first, then those that something moved to.
int rank_of(const ShownTool* tool) {
  const auto has = [&](Kind kind) {
    return std::ranges::find(tool->changes, kind, &ShownChange::kind) != tool->changes.end();
  };
  return has(Kind::widened) ? 0 : has(Kind::moved) ? 1 : 2;
}

void write_tools(const ShownServer& server, std::string& out) {
  if (server.tools.empty()) return;
  out += "\n### Tool by tool\n\n";
  std::vector<const ShownTool*> tools;
  tools.reserve(server.tools.size());
  for (const ShownTool& tool : server.tools) tools.push_back(&tool);
  if (tools.size() > most_tools) {
    sort_stably(tools, rank_of);
    tools.resize(most_tools);
  }
  for (const ShownTool* each : tools) {
    const ShownTool& tool = *each;
    out += format("- {}\n", tool_title(tool));
    Changes changes;
    for (const ShownChange& change : tool.changes) changes.push_back(&change);
    for (const ShownChange* change : most_telling(std::move(changes), most_of_a_tool)) {
      out += format("  - {}\n", tool_line(*change));
    }
    if (tool.changes.size() > most_of_a_tool) {
      out += format("  - and {} more\n", tool.changes.size() - most_of_a_tool);
    }
  }
  if (server.tools.size() > most_tools) {
    out += format("- and {} more tools\n", server.tools.size() - most_tools);
  }
}

void write_parts(const ShownServer& server, ShownPart::Kind kind, std::string& out) {
  constexpr std::string_view titles[] = {
      "What is there now and was not before", "What differs, and nobody can say which way",
      "What is no longer there", "What else changed, and is no permission"};
  std::size_t count = 0;
  for (const ShownPart& part : server.parts) {
    if (part.kind != kind) continue;
    if (count == 0) out += format("\n### {}\n\n", titles[static_cast<std::size_t>(kind)]);
    if (++count > most_changes) continue;
    const std::string_view sign = part.before.empty()  ? "new:"
                                  : part.after.empty() ? "gone:"
                                                       : "changed:";
    out += format("- {} {}", sign, markdown_code(part_words(part)));
    const std::string cause = part_cause(part);
    if (!cause.empty()) {
      out += format(", {}", part.capability.empty() ? markdown_text(cause) : markdown_code(cause));
    }
    out += '\n';
  }
  if (count > most_changes) {
    out += format("- and {} more, which `capgate diff` lists\n", count - most_changes);
  }
}

void write_advice(std::span<const ShownServer> servers, std::string& out) {
  const auto has = [&](Verdict verdict) {
    return std::ranges::find(servers, verdict, &ShownServer::verdict) != servers.end();
  };
  const auto is_told = [](const ShownServer& server) {
    return std::ranges::find(server.parts, ShownPart::Kind::told, &ShownPart::kind) !=
           server.parts.end();
  };
  const bool has_told = std::ranges::any_of(servers, is_told);
  out += format("\n{}\n\n", markdown_advice);
  if (has(Verdict::more)) {
    out +=
        "Each line under \"What it may do now\" is a permission that the sandbox of the server "
        "will "
        "grant once this is merged.\n\n"
        "- **Approve** if the change really needs each of them.\n"
        "- **Ask for less** otherwise: the exact host, path or program instead of a wider one, "
        "`fs:read` instead of `fs:write`, a secret that is sealed to its service "
        "(`env:inject:NAME?to=HOST:PORT`) instead of held.\n";
  } else if (has(Verdict::unclear)) {
    out +=
        "What differs cannot be judged by its meaning: look at each line. Another program gets all "
        "permissions of the server; of an artifact, compile the manifest again and use what comes "
        "out.\n";
  } else if (has(Verdict::moved)) {
    out +=
        "The server as a whole may do no more than before. Look at the tools above: each may now "
        "do something that only other tools could.\n";
  } else if (!has_told) {
    out += "No server may do more than before: nothing here needs an approval.\n";
  }
  if (has_told) {
    out += has(Verdict::more) || has(Verdict::unclear) || has(Verdict::moved) ? "\n" : "";
    const bool is_same = std::ranges::all_of(
        servers, [](const ShownServer& server) { return server.verdict == Verdict::same; });
    out += is_same ? "No permission changed, but something else did: look at it.\n"
                   : "Something changed that is no permission: look at that too.\n";
  }
}

}  // namespace

std::string diff_markdown(std::span<const ShownServer> servers, const DiffFacts& facts) {
  std::string out = format("{}\n", markdown_marker);
  // The worst first: none is hidden behind many that are harmless.
  std::vector<const ShownServer*> sorted;
  sorted.reserve(servers.size());
  const bool is_any = std::ranges::any_of(servers, &ShownServer::is_changed);
  for (const ShownServer& server : servers) {
    if (!is_any || server.is_changed()) sorted.push_back(&server);
  }
  sort_stably(sorted, [](const ShownServer* server) { return -static_cast<int>(server->verdict); });
  const std::size_t shown = sorted.size();
  sorted.resize(std::min(shown, most_servers));
  for (const ShownServer* each : sorted) {
    const ShownServer& server = *each;
    out += format("## This change {}\n",
                  verdict_words(server, format("**{}**", markdown_text(server.name))));
    write_group(server, Kind::widened, "What it may do now and could not do before", out);
    write_group(server, Kind::narrowed, "What became less", out);
    write_tools(server, out);
    using enum ShownPart::Kind;
    for (const auto kind : {widened, differs, narrowed, told}) write_parts(server, kind, out);
    out += '\n';
  }
  if (shown > most_servers) {
    out += format("## And {} more servers, which `capgate diff` lists\n", shown - most_servers);
  }
  if (out.ends_with("\n\n")) out.pop_back();
  for (const std::string& note : facts.notes) out += format("\nNote: {}\n", markdown_text(note));
  if (!facts.unbound.empty()) {
    std::string names;
    for (const std::string& name : facts.unbound) {
      names += format("{}{}", names.empty() ? "" : ", ", markdown_code(format("${{{}}}", name)));
    }
    out +=
        format("\nCompared by name, since their values are set where the server runs: {}\n", names);
  }
  // The last section, so that a program which prints several of these can leave it out of all but
  // one.
  write_advice(servers, out);
  out += "\n<sub>Compared by what the two versions allow, not by their text.</sub>\n";
  return out;
}

}  // namespace capgate::review
