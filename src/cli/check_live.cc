#include "cli/check_live.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/approve_words.h"
#include "cli/approved.h"
#include "cli/candidate.h"
#include "cli/exit.h"
#include "cli/live.h"
#include "cli/project.h"
#include "clients/config.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using text::JsonWriter;

// Something that was approved of the server, and what is held against it.
struct Approved {
  clients::Pin pin;
  std::string name;       // "what you approved on ..."
  std::string lock = {};  // the file that has it; empty: the user's record
  bool of_base = false;   // of the entry that a project's narrows
};

struct PinComparison {
  std::string with;   // Approved::name
  std::string again;  // the command that approves it
  clients::PinDiff change;
  bool of_base = false;
};

struct Comparison {
  std::vector<PinComparison> pins;      // one for each that was approved; empty: nothing was
  std::vector<std::string> undeclared;  // tools that the manifest does not have
  std::vector<std::string> gone;        // tools of the manifest that the server does not list

  [[nodiscard]] bool is_drift() const { return !undeclared.empty() || !gone.empty(); }
  // The first that differs; null: none does.
  [[nodiscard]] const PinComparison* changed() const {
    const auto found = std::ranges::find_if(
        pins, [](const PinComparison& each) { return !each.change.is_empty(); });
    return found == pins.end() ? nullptr : &*found;
  }
};

void write_strings(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

// A manifest without any tool speaks of the server as a whole.
void compare_manifest(const core::Manifest& manifest, const clients::Pin& now, Comparison& out) {
  if (manifest.tools.empty()) return;
  for (const clients::PinnedTool& tool : *now.tools) {
    if (!manifest.find_tool(tool.name)) out.undeclared.push_back(tool.name);
  }
  for (const core::Tool& tool : manifest.tools) {
    const bool is_listed =
        std::ranges::binary_search(*now.tools, tool.name, {}, &clients::PinnedTool::name);
    if (!is_listed) out.gone.push_back(tool.name);
  }
}

std::string approve_again(const Candidate& candidate, const std::string& lock,
                          const Arguments& arguments) {
  return approve_words({.server = candidate.server,
                        .manifest = candidate.has_entry() ? "" : candidate.file,
                        .lock = lock,
                        .command = {arguments.operands.begin() + 1, arguments.operands.end()},
                        .is_live = true},
                       arguments);
}

// The user's own record of an entry, if there is one with a pin.
std::expected<void, int> add_record(const std::string& scope, const std::string& server,
                                    bool of_base, std::vector<Approved>& out, Output& output) {
  const auto found = clients::Approvals(approvals_directory()).find(scope, server);
  if (!found) {
    output.err += format("capgate: {}\n", found.error());
    return std::unexpected(Exit::unreadable);
  }
  if (!*found || !(*found)->pin) return {};
  out.push_back({.pin = *(*found)->pin,
                 .name = format("what you approved on {}{}", escape_for_terminal((*found)->date),
                                of_base ? " of your own entry" : ""),
                 .of_base = of_base});
  return {};
}

std::expected<bool, int> add_locked(const std::string& lock, const std::string& server,
                                    LockFile presence, std::vector<Approved>& out, Output& output) {
  auto pin = find_locked_pin(lock, server, presence, output);
  if (!pin) return std::unexpected(pin.error());
  if (!*pin) return false;
  out.push_back({.pin = **std::move(pin),
                 .name = format("what {} says", escape_for_terminal(lock)),
                 .lock = lock});
  return true;
}

// All that holds for a run, as check_approved() has it: a lock can only refuse, so none of them
// takes the place of another one.
std::expected<std::vector<Approved>, int> find_approved(const Candidate& candidate,
                                                        const Arguments& arguments,
                                                        Output& output) {
  std::vector<Approved> out;
  if (candidate.has_entry()) {
    auto added = add_record(candidate.scope, candidate.server, false, out, output);
    if (added && candidate.base_entry) {
      added =
          add_record(approval_scope(*candidate.base_entry), candidate.server, true, out, output);
    }
    if (!added) return std::unexpected(added.error());
  }
  if (const auto lock = arguments.value(locked_option.name)) {
    const std::string file(*lock);
    const auto added = add_locked(file, candidate.server, LockFile::must_exist, out, output);
    if (!added) return std::unexpected(added.error());
    if (!*added) {
      (void)usage_error(
          format("{} has no server {}", escape_for_terminal(file), quoted(candidate.server)),
          approve_again(candidate, file, arguments), output);
      return std::unexpected(Exit::integrity);
    }
  }
  if (candidate.has_entry() && candidate.is_of_project) {
    const auto added =
        add_locked(lock_beside(candidate.file), candidate.server, LockFile::may_lack, out, output);
    if (!added) return std::unexpected(added.error());
  }
  return out;
}

// The pin of the user's own entry, with what the server says now.
std::expected<clients::Pin, int> base_pin(const Candidate& candidate, const clients::Pin& now,
                                          Output& output) {
  auto out = pin_of(candidate.base_subject(), output);
  if (!out) return out;
  out->protocol = now.protocol;
  out->tools = now.tools;
  out->instructions = now.instructions;
  out->declares = now.declares;
  return out;
}

std::expected<std::vector<PinComparison>, int> compare_approved(
    const Candidate& candidate, const std::vector<Approved>& approved, const clients::Pin& now,
    const Arguments& arguments, Output& output) {
  std::vector<PinComparison> out;
  for (const Approved& each : approved) {
    const std::string again = approve_again(candidate, each.lock, arguments);
    if (!each.pin.tools) {
      output.err += format("note: its tools were not asked for in {}\n", each.name);
    }
    if (!each.of_base) {
      out.push_back({.with = each.name,
                     .again = again,
                     .change = difference(each.pin, now, candidate.subject())});
      continue;
    }
    const auto base = base_pin(candidate, now, output);
    if (!base) return std::unexpected(base.error());
    out.push_back({.with = each.name,
                   .again = again,
                   .change = difference(each.pin, *base, candidate.base_subject()),
                   .of_base = true});
  }
  return out;
}

std::string comparison_json(const Comparison& result, const Candidate& candidate,
                            const clients::Pin& now) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("server").string(candidate.server);
  json.key("protocol").string(now.protocol);
  const PinComparison* changed = result.changed();
  json.key("compared").boolean(!result.pins.empty());
  json.key("changed").boolean(changed != nullptr);
  write_json(changed != nullptr ? changed->change : clients::PinDiff(), json.key("change"));
  json.key("comparisons").begin_array();
  for (const PinComparison& each : result.pins) {
    json.begin_object().key("with").string(each.with);
    json.key("changed").boolean(!each.change.is_empty());
    write_json(each.change, json.key("change"));
    json.end_object();
  }
  json.end_array();
  write_strings(json.key("undeclared"), result.undeclared);
  write_strings(json.key("gone"), result.gone);
  json.key("tools").begin_array();
  for (const clients::PinnedTool& tool : *now.tools) {
    json.begin_object().key("name").string(tool.name);
    json.key("hash").string(tool_hash(tool)).end_object();
  }
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

void say(const Comparison& result, const Candidate& candidate, const clients::Pin& now,
         Output& output) {
  const std::string count =
      format("{} tool{}", now.tools->size(), now.tools->size() == 1 ? "" : "s");
  for (const PinComparison& each : result.pins) {
    if (each.change.is_empty()) continue;
    output.err += format("capgate: {} is not {}:\n{}help: if this is meant{}: {}\n",
                         candidate.server, each.with, print(each.change),
                         each.of_base ? ", elsewhere than in this project" : "", each.again);
  }
  for (const std::string& tool : result.undeclared) {
    output.err += format("{} lists the tool {}, which its manifest does not have\n",
                         candidate.server, quoted(tool));
  }
  for (const std::string& tool : result.gone) {
    output.err += format("its manifest has the tool {}, which {} does not list\n", quoted(tool),
                         candidate.server);
  }
  if (result.pins.empty()) output.err += "note: nothing of it was approved yet\n";
  if (result.changed() != nullptr || result.is_drift()) return;
  std::string with;
  for (const PinComparison& each : result.pins) {
    with += format("{}{}", with.empty() ? "" : " and ", each.with);
  }
  output.out += with.empty() ? format("{}: {}\n", candidate.server, count)
                             : format("{}: ok: {}, as in {}\n", candidate.server, count, with);
}

std::expected<Candidate, int> read_candidate(const Arguments& arguments, Output& output) {
  const std::string& first = arguments.operands.front();
  const std::vector<std::string> command(arguments.operands.begin() + 1, arguments.operands.end());
  // A manifest is named by its file, which has an ending or a directory.
  const bool is_file = first.contains('/') || first.ends_with(".json") ||
                       first.ends_with(".yaml") || first.ends_with(".yml");
  auto out = is_file ? candidate_of_manifest("", first, command, arguments, output)
                     : candidate_of_entry(first, command, arguments, output);
  if (out && out->command.empty()) {
    return std::unexpected(usage_error(format("{} has no command to start", out->server),
                                       "write it: capgate check --live NAME|FILE -- COMMAND",
                                       output));
  }
  return out;
}

}  // namespace

int check_lock(const std::string& file, const Arguments& arguments, Output& output) {
  const auto candidate = candidate_of_manifest("", file, {}, arguments, output);
  if (!candidate) return candidate.error();
  const auto approved = find_approved(*candidate, arguments, output);
  if (!approved) return approved.error();
  const auto now = pin_of(candidate->subject(), output);
  if (!now) return now.error();
  for (const Approved& each : *approved) {
    const clients::PinDiff change = difference(each.pin, *now, candidate->subject());
    if (change.is_empty()) continue;
    // With what starts it and is asked for its tools, which are pinned there.
    output.err += format("capgate: {} is not {}:\n{}help: if this is meant: {}\n",
                         candidate->server, each.name, print(change),
                         approve_words({.server = candidate->server,
                                        .manifest = file,
                                        .lock = each.lock,
                                        .command = each.pin.command},
                                       arguments));
    return Exit::integrity;
  }
  return Exit::ok;
}

int check_live(const Arguments& arguments, Output& output) {
  if (arguments.words_before_dashes() != 1) {
    return usage_error("--live takes one NAME or FILE",
                       "its command stands after --: capgate check --live NAME|FILE -- COMMAND",
                       output);
  }
  const auto candidate = read_candidate(arguments, output);
  if (!candidate) return candidate.error();
  const auto approved = find_approved(*candidate, arguments, output);
  if (!approved) return approved.error();
  const auto now = live_pin(*candidate, arguments, output);
  if (!now) return now.error();
  Comparison result;
  compare_manifest(candidate->loaded.manifest, *now, result);
  if (auto done = compare_approved(*candidate, *approved, *now, arguments, output); done) {
    result.pins = *std::move(done);
  } else {
    return done.error();
  }
  if (arguments.has("--json")) output.out += comparison_json(result, *candidate, *now);
  const std::string out_before = output.out;
  say(result, *candidate, *now, output);
  if (arguments.has("--json")) output.out = out_before;
  if (result.changed() != nullptr) return Exit::integrity;
  return result.is_drift() ? Exit::widened : Exit::ok;
}

}  // namespace capgate::cli
