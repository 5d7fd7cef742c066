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

struct Comparison {
  std::string with;   // what it was compared with; empty: nothing was approved
  std::string again;  // the command that approves it
  clients::PinDiff change;
  std::vector<std::string> undeclared;  // tools that the manifest does not have
  std::vector<std::string> gone;        // tools of the manifest that the server does not list

  [[nodiscard]] bool is_drift() const { return !undeclared.empty() || !gone.empty(); }
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

struct Approved {
  std::optional<clients::Pin> pin;
  std::string name;
  std::string lock = {};  // the file that has it; empty: the user's record
};

std::string approve_again(const Candidate& candidate, const std::string& lock,
                          const Arguments& arguments) {
  return approve_words({.server = candidate.server,
                        .manifest = candidate.has_entry() ? "" : candidate.file,
                        .lock = lock,
                        .command = {arguments.operands.begin() + 1, arguments.operands.end()},
                        .is_live = true},
                       arguments);
}

// --locked, else the user's record, else the lock beside a project's file.
std::expected<Approved, int> find_approved(const Candidate& candidate, const Arguments& arguments,
                                           Output& output) {
  if (const auto lock = arguments.value(locked_option.name)) {
    const std::string file(*lock);
    auto pin = find_locked_pin(file, candidate.server, LockFile::must_exist, output);
    if (!pin) return std::unexpected(pin.error());
    if (!*pin) {
      (void)usage_error(
          format("{} has no server {}", escape_for_terminal(file), quoted(candidate.server)),
          approve_again(candidate, file, arguments), output);
      return std::unexpected(Exit::integrity);
    }
    return Approved{.pin = *std::move(pin),
                    .name = format("what {} says", escape_for_terminal(file)),
                    .lock = file};
  }
  if (!candidate.has_entry()) return Approved{};
  auto found = clients::Approvals(approvals_directory()).find(candidate.scope, candidate.server);
  if (!found) {
    output.err += format("capgate: {}\n", found.error());
    return std::unexpected(Exit::unreadable);
  }
  if (*found && (*found)->pin) {
    return Approved{.pin = (*found)->pin,
                    .name = format("what you approved on {}", escape_for_terminal((*found)->date))};
  }
  if (candidate.scope.empty()) return Approved{};
  const std::string lock = lock_beside(candidate.file);
  auto pin = find_locked_pin(lock, candidate.server, LockFile::may_lack, output);
  if (!pin) return std::unexpected(pin.error());
  return Approved{.pin = *std::move(pin),
                  .name = format("what {} says", escape_for_terminal(lock)),
                  .lock = lock};
}

std::string comparison_json(const Comparison& result, const Candidate& candidate,
                            const clients::Pin& now) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("server").string(candidate.server);
  json.key("protocol").string(now.protocol);
  json.key("compared").boolean(!result.with.empty());
  json.key("changed").boolean(!result.change.is_empty());
  write_json(result.change, json.key("change"));
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
  if (!result.change.is_empty()) {
    output.err += format("capgate: {} is not {}:\n{}help: if this is meant: {}\n", candidate.server,
                         result.with, print(result.change), result.again);
  }
  for (const std::string& tool : result.undeclared) {
    output.err += format("{} lists the tool {}, which its manifest does not have\n",
                         candidate.server, quoted(tool));
  }
  for (const std::string& tool : result.gone) {
    output.err += format("its manifest has the tool {}, which {} does not list\n", quoted(tool),
                         candidate.server);
  }
  if (result.with.empty()) output.err += "note: nothing of it was approved yet\n";
  if (!result.change.is_empty() || result.is_drift()) return;
  output.out += result.with.empty()
                    ? format("{}: {}\n", candidate.server, count)
                    : format("{}: ok: {}, as in {}\n", candidate.server, count, result.with);
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
  const clients::PinDiff change = difference(*approved->pin, *now, candidate->subject());
  if (change.is_empty()) return Exit::ok;
  // With what starts it and is asked for its tools, which are pinned there.
  output.err += format("capgate: {} is not {}:\n{}help: if this is meant: {}\n", candidate->server,
                       approved->name, print(change),
                       approve_words({.server = candidate->server,
                                      .manifest = file,
                                      .lock = approved->lock,
                                      .command = approved->pin->command},
                                     arguments));
  return Exit::integrity;
}

int check_live(const Arguments& arguments, Output& output) {
  if (arguments.words_before_dashes() != 1) {
    return usage_error("--live takes one NAME or FILE",
                       "its command stands after --: capgate check --live NAME|FILE -- COMMAND",
                       output);
  }
  const auto candidate = read_candidate(arguments, output);
  if (!candidate) return candidate.error();
  auto approved = find_approved(*candidate, arguments, output);
  if (!approved) return approved.error();
  const auto now = live_pin(*candidate, arguments, output);
  if (!now) return now.error();
  Comparison result;
  compare_manifest(candidate->loaded.manifest, *now, result);
  if (approved->pin) {
    result.with = approved->name;
    result.again = approve_again(*candidate, approved->lock, arguments);
    result.change = difference(*approved->pin, *now, candidate->subject());
    if (!approved->pin->tools)
      output.err += "note: its tools were not asked for when it was approved\n";
  }
  if (arguments.has("--json")) output.out += comparison_json(result, *candidate, *now);
  const std::string out_before = output.out;
  say(result, *candidate, *now, output);
  if (arguments.has("--json")) output.out = out_before;
  if (!result.change.is_empty()) return Exit::integrity;
  return result.is_drift() ? Exit::widened : Exit::ok;
}

}  // namespace capgate::cli
