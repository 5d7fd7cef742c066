#include "review/report.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "core/built_in.h"
#include "core/describe.h"
#include "core/rights.h"
#include "lower/common.h"
#include "review/report_held.h"
#include "review/report_words.h"

namespace capgate::review {
namespace {

using core::Capability;
using core::GrantChange;
using core::LimitCapability;

struct DoorWords {
  std::string_view name;
  std::string_view title;
  std::string_view closed;
};

const DoorWords& words_of(Door door) {
  static constexpr DoorWords table[] = {
      {"files", "Files", "no file of yours"},
      {"network", "Network", "no connection, in or out"},
      {"programs", "Programs", "no program but itself"},
      {"secrets", "Secrets and variables", "none of your variables"},
      {"sockets", "Sockets, desktop, clock", "no socket, no display"},
      {"limits", "Limits", "the defaults"},
      {"promises", "Promises", "none"},
  };
  return table[static_cast<std::size_t>(door)];
}

template <typename... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};

std::string_view verb_of(const Capability& capability) {
  return std::visit(Overloaded{
                        [](const core::FsCapability& fs) -> std::string_view {
                          if (fs.actions.has(core::FsAction::write)) return "write";
                          if (fs.actions.has(core::FsAction::remove)) return "delete";
                          return fs.actions.has(core::FsAction::create) ? "create" : "read";
                        },
                        [](const core::NetConnect&) -> std::string_view { return "connect"; },
                        [](const core::NetListen&) -> std::string_view { return "accept"; },
                        [](const core::ExecCapability&) -> std::string_view { return "start"; },
                        [](const core::EnvCapability& env) -> std::string_view {
                          if (!env.to.empty()) return "sealed";
                          return env.action == core::EnvCapability::Action::read ? "see" : "hold";
                        },
                        [](const core::IpcCapability&) -> std::string_view { return "talk to"; },
                        [](const core::ClockCapability&) -> std::string_view { return "clock"; },
                        [](const LimitCapability& limit) { return limit_name(limit.kind); },
                        [](const core::AssertCapability&) -> std::string_view { return "promise"; },
                    },
                    capability);
}

// What follows the kind and the action, of which clock has none.
std::string scope_of(const Capability& capability, std::string_view printed) {
  const std::size_t kind = printed.find(':') + 1;
  if (std::holds_alternative<core::ClockCapability>(capability) ||
      std::holds_alternative<core::AssertCapability>(capability)) {
    return escape_for_terminal(printed.substr(kind));
  }
  return escape_for_terminal(printed.substr(printed.find(':', kind) + 1));
}

std::string shown_file(std::string_view name) {
  return escape_for_terminal(name.substr(name.rfind('/') + 1));
}

// ---- lines --------------------------------------------------------------------------------------

bool is_metadata(const Capability& capability) {
  const auto* assertion = std::get_if<core::AssertCapability>(&capability);
  return assertion != nullptr && assertion->id != core::block_private_id;
}

void set_held(const ReportInput& input, const HeldBy& held, const Capability& capability,
              Line& line) {
  const lower::Cover& cover = cover_of(*input.target.coverage, capability);
  const auto refused = held.refused.find(print(capability));
  if (refused != held.refused.end()) {
    line.held = Held::not_enforced;
    line.by = refused->second;
    return;
  }
  if (is_metadata(capability)) {
    const auto how =
        validator_of(std::get<core::AssertCapability>(capability), input.options.validators);
    line.held = how.empty() ? Held::not_enforced : Held::enforced;
    line.by = how.empty() ? "nothing in the sandbox: a promise for the host to verify"
                          : format("the host: {}", escape_for_terminal(how));
    return;
  }
  line.by = input.target.name == "plan" ? enforcement(capability) : cover.how;
  if (cover.level == lower::Cover::Level::partly) line.held = Held::partly;
  if (cover.level == lower::Cover::Level::no) line.held = Held::not_enforced;
}

Origin origin_of(const ReportInput& input, const core::Declared& declared) {
  const lower::Input lowered{input.manifest, input.policy, input.options, &input.source};
  const bool whole = declared.tool == core::Declared::whole_server;
  return {.tool = whole ? std::string() : escape_for_terminal(input.manifest.owner(declared)),
          .place = escape_for_terminal(position_of(declared, lowered)),
          .capability = escape_for_terminal(print(declared.capability))};
}

// Widened grants of the whole server, by their canonical text.
using Wider = std::map<std::string, const GrantChange*>;

Wider wider_of(const ReportInput& input) {
  Wider out;
  if (input.change == nullptr) return out;
  for (const GrantChange& change : input.change->server) {
    if (change.kind == GrantChange::Kind::widened) out.emplace(print(change.subject()), &change);
  }
  return out;
}

std::vector<Line> lines_of(const ReportInput& input, const HeldBy& held) {
  std::vector<Line> out;
  const Wider wider = wider_of(input);
  for_each_grant(input.policy, [&](const Capability& capability, const core::Origins& origins) {
    const std::string printed = print(capability);
    Line line{.door = door_of(capability),
              .capability = escape_for_terminal(printed),
              .meaning = describe(capability),
              .verb = std::string(verb_of(capability)),
              .scope = scope_of(capability, printed)};
    set_held(input, held, capability, line);
    if (const auto found = wider.find(printed); found != wider.end()) {
      line.is_wider = true;
      const auto& before = found->second->before;
      if (before) line.before = escape_for_terminal(print(*before));
    }
    for (const std::uint32_t index : origins) {
      const core::Declared& declared = input.manifest.declared[index];
      line.origins.push_back(origin_of(input, declared));
      line.origins.back().only_reads = !core::bears_on(declared.capability, capability);
    }
    out.push_back(std::move(line));
  });
  return out;
}

// ---- tools --------------------------------------------------------------------------------------

// Of one tool: what it may do since the change, and whether it is new.
struct ToolNews {
  std::set<std::string> wider;
  bool is_new = false;
};

std::map<std::string, ToolNews> news_of(const ReportInput& input) {
  std::map<std::string, ToolNews> out;
  if (input.change == nullptr) return out;
  for (const core::ToolChange& tool : input.change->tools) {
    ToolNews& news = out[tool.tool];
    news.is_new = tool.presence == core::ToolChange::Presence::added;
    for (const GrantChange& change : tool.changes) {
      if (change.kind == GrantChange::Kind::narrowed) continue;
      news.wider.insert(print(change.subject()));
      if (change.side() == GrantChange::Side::before) continue;  // its lines are the old ones
      // The tool's grant is what its declarations come to; these are the ones to mark.
      for (const std::uint32_t index : change.origins) {
        if (index >= input.manifest.declared.size()) continue;
        news.wider.insert(print(input.manifest.declared[index].capability));
      }
    }
  }
  return out;
}

std::vector<ToolRow> tools_of(const ReportInput& input) {
  const core::Manifest& manifest = input.manifest;
  const auto news = news_of(input);
  const lower::Input lowered{manifest, input.policy, input.options, &input.source};
  std::vector<ToolRow> rows(manifest.tools.size() + 1);  // the first is the whole server
  for (std::size_t i = 0; i < manifest.tools.size(); ++i) {
    const core::Tool& tool = manifest.tools[i];
    const core::Declared at{.capability = core::ClockCapability{}, .where = tool.where};
    rows[i + 1].name = escape_for_terminal(tool.name);
    rows[i + 1].place = escape_for_terminal(position_of(at, lowered));
    const auto found = news.find(tool.name);
    rows[i + 1].is_new = found != news.end() && found->second.is_new;
  }
  const Wider whole = wider_of(input);
  for (const core::Declared& declared : manifest.declared) {
    const bool is_whole = declared.tool == core::Declared::whole_server;
    const std::string printed = print(declared.capability);
    ToolLine line{.capability = escape_for_terminal(printed),
                  .meaning = describe(declared.capability),
                  .door = door_of(declared.capability)};
    if (is_whole) {
      line.is_wider = whole.contains(printed);
    } else {
      const auto found = news.find(manifest.tools[declared.tool].name);
      line.is_wider = found != news.end() && found->second.wider.contains(printed);
    }
    rows[is_whole ? 0 : declared.tool + 1].lines.push_back(std::move(line));
  }
  const std::string only = escape_for_terminal(input.options.tool);
  if (!only.empty()) {
    std::erase_if(rows, [&](const ToolRow& row) { return !row.name.empty() && row.name != only; });
  }
  if (rows.front().lines.empty()) rows.erase(rows.begin());
  return rows;
}

// ---- changes and limits -------------------------------------------------------------------------

// A bound that is gone is a widening that only the old side has.
bool is_gone(const GrantChange& change) {
  return change.kind == GrantChange::Kind::widened && !change.after;
}

Change change_of(const GrantChange& change, std::string_view tool) {
  return {.kind = change.kind,
          .tool = escape_for_terminal(tool),
          .capability = escape_for_terminal(print(change.subject())),
          .meaning = describe(change.subject()),
          .before = change.before && change.side() == GrantChange::Side::after
                        ? escape_for_terminal(print(*change.before))
                        : std::string(),
          .is_gone = tool.empty() && is_gone(change)};
}

void add_changes(const ReportInput& input, GrantChange::Kind kind, Report& out) {
  for (const GrantChange& change : input.change->server) {
    if (change.kind == kind) out.changes.push_back(change_of(change, ""));
  }
  for (const core::ToolChange& tool : input.change->tools) {
    const bool every = tool.presence == core::ToolChange::Presence::every;
    for (const GrantChange& change : tool.changes) {
      if (change.kind != kind) continue;
      out.changes.push_back(change_of(change, every ? "serverCapabilities" : tool.tool));
    }
  }
}

void add_changes(const ReportInput& input, Report& out) {
  if (input.change == nullptr) return;
  out.against = shown_file(input.against);
  for (const core::ToolChange& tool : input.change->tools) {
    if (tool.presence == core::ToolChange::Presence::removed) {
      out.removed_tools.push_back(escape_for_terminal(tool.tool));
    }
  }
  // The worst comes first.
  using Kind = GrantChange::Kind;
  for (const Kind kind : {Kind::widened, Kind::moved, Kind::narrowed}) {
    add_changes(input, kind, out);
  }
}

std::vector<Limit> limits_of(const core::Policy& policy) {
  using Kind = LimitCapability::Kind;
  std::vector<Limit> out;
  for (const Kind kind :
       {Kind::memory, Kind::cpu, Kind::pids, Kind::files, Kind::disk, Kind::time}) {
    const lower::PlanLimit limit = lower::limit_of(policy, kind);
    const LimitCapability shown{.kind = kind, .value = limit.value};
    out.push_back({.name = std::string(limit_name(kind)),
                   .value = limit.value == 0 ? "no limit" : print_limit_value(shown),
                   .is_default = limit.is_default});
  }
  return out;
}

std::vector<Door> unguarded_of(const lower::Target& target) {
  if (target.extent == lower::Target::Extent::whole) return {};
  const lower::Coverage& coverage = *target.coverage;
  const std::pair<Door, const lower::Cover&> doors[] = {
      {Door::files, coverage.fs},      {Door::network, coverage.connect},
      {Door::programs, coverage.exec}, {Door::secrets, coverage.env},
      {Door::sockets, coverage.ipc},   {Door::limits, coverage.limit}};
  std::vector<Door> out;
  for (const auto& [door, cover] : doors) {
    if (cover.level == lower::Cover::Level::no) out.push_back(door);
  }
  return out;
}

std::size_t count(const std::vector<Line>& lines, auto is_counted) {
  return static_cast<std::size_t>(std::ranges::count_if(lines, is_counted));
}

}  // namespace

Door door_of(const Capability& capability) {
  constexpr Door doors[] = {Door::files,    Door::network, Door::network,
                            Door::programs, Door::secrets, Door::sockets,
                            Door::sockets,  Door::limits,  Door::promises};
  static_assert(std::size(doors) == std::variant_size_v<Capability>);
  return doors[capability.index()];
}

std::string_view door_title(Door door) { return words_of(door).title; }
std::string_view closed_words(Door door) { return words_of(door).closed; }
std::string_view door_name(Door door) { return words_of(door).name; }

std::string_view held_name(Held held) {
  constexpr std::string_view names[] = {"enforced", "partly", "notEnforced"};
  return names[static_cast<std::size_t>(held)];
}

std::string_view change_name(GrantChange::Kind kind) {
  constexpr std::string_view names[] = {"widened", "narrowed", "moved"};
  return names[static_cast<std::size_t>(kind)];
}

std::size_t Report::wider_lines() const {
  return count(lines, [](const Line& line) { return line.is_wider; });
}

std::size_t Report::open_lines() const {
  return count(lines, [](const Line& line) { return line.held != Held::enforced; });
}

bool Report::is_guarded(Door door) const {
  return std::ranges::find(unguarded, door) == unguarded.end();
}

Report make_report(const ReportInput& input) {
  const lower::Input lowered{input.manifest, input.policy, input.options, &input.source};
  HeldBy held = ask_target(input.target, lowered);
  Report out{.name = escape_for_terminal(input.manifest.name),
             .version = escape_for_terminal(input.manifest.version),
             .file = shown_file(input.source.name()),
             .manifest_hash = input.manifest.hash,
             .policy_hash = input.policy.hash,
             .target = std::string(input.target.name),
             .target_summary = std::string(input.target.summary),
             .is_partial_target = input.target.extent == lower::Target::Extent::partial,
             .tool = escape_for_terminal(input.options.tool),
             .is_sealed = input.options.seal || input.manifest.seal,
             .lines = lines_of(input, held),
             .tools = tools_of(input),
             .limits = limits_of(input.policy),
             .unguarded = unguarded_of(input.target),
             .problems = std::move(held.problems),
             .not_stopped = what_is_not_stopped(input.manifest, input.policy)};
  for (const std::string& note : lower::policy_notes(lowered)) {
    out.notes.push_back(escape_for_terminal(note));
  }
  add_changes(input, out);
  out.verdict = verdict_of(input.policy, out);
  return out;
}

}  // namespace capgate::review
