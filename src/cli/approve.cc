// capgate approve: what a project's capgate.yaml says beyond the user's own, shown and then kept as
// approved.
#include <unistd.h>

#include <ctime>

#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/project.h"
#include "clients/approvals.h"
#include "core/describe.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

using clients::Approval;
using clients::Approvals;
using text::JsonWriter;

constexpr Option options[] = {
    {.name = "--yes", .help = "without asking; needed where there is no terminal"},
    {.name = "--list", .help = "show what was approved, of all projects"},
    {.name = "--revoke", .value = "NAME", .help = "forget what was approved of this server here"},
    set_option,
    json_option,
};

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
    return "";
  }
  return text;
}

int fail(std::string_view message, Output& output) {
  output.err += format("capgate: {}\n", message);
  return Exit::unreadable;
}

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

int list(const Arguments& arguments, Output& output) {
  const auto all = Approvals(approvals_directory()).all();
  if (!all) return fail(all.error(), output);
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("schemaVersion").number(1).key("approvals").begin_array();
    for (const Approval& each : *all) {
      json.begin_object().key("directory").string(each.directory);
      json.key("server").string(each.server).key("hash").string(each.hash);
      json.key("date").string(each.date);
      write_texts(json.key("policy"), each.policy);
      json.end_object();
    }
    json.end_array().end_object();
    output.out += std::move(json).take() + "\n";
    return Exit::ok;
  }
  for (const Approval& each : *all) {
    output.out += format("{}  {}  {}\n", each.date, escape_for_terminal(each.server),
                         escape_for_terminal(each.directory));
  }
  if (all->empty()) output.err += "nothing is approved\n";
  return Exit::ok;
}

int revoke(const Arguments& arguments, Output& output) {
  const std::string name(*arguments.value("--revoke"));
  const std::string directory = config_places(arguments).directory;
  const auto revoked = Approvals(approvals_directory()).revoke(directory, name);
  if (!revoked) return fail(revoked.error(), output);
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("schemaVersion").number(1).key("revoked").boolean(*revoked);
    json.end_object();
    output.out += std::move(json).take() + "\n";
  }
  if (*revoked) {
    output.err += format("{} is not approved any more\n", quoted(name));
    return Exit::ok;
  }
  return usage_error(format("nothing of {} was approved here", quoted(name)),
                     "capgate approve --list shows what was, and where", output);
}

// What the server would be allowed, all of it, and which of it is new.
std::string shown(const ProjectEntry& project) {
  std::string out =
      format("{}: {} may\n", escape_for_terminal(project.entry.file), project.entry.server.name);
  bool any = false;
  core::for_each_grant(project.loaded.policy,
                       [&](const core::Capability& capability, const core::Origins&) {
                         any = true;
                         out += format("  - {}\n      {}\n", describe(capability),
                                       escape_for_terminal(print(capability)));
                       });
  out += any ? "and nothing else.\n" : "  do nothing but compute and talk to its client.\n";
  for (const std::string& note : project.entry.server.notes) out += format("note: {}\n", note);
  out += "Beyond your own configuration:\n";
  for (const std::string& line : project.beyond) {
    out += format("  + {}\n", escape_for_terminal(line));
  }
  return out;
}

void write_json(const ProjectEntry& project, bool is_approved, Output& output) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1);
  json.key("server").string(project.entry.server.name);
  json.key("directory").string(project.directory).key("file").string(project.entry.file);
  json.key("hash").string(project.hash).key("approved").boolean(is_approved);
  write_texts(json.key("policy"), core::policy_lines(project.loaded.policy));
  write_texts(json.key("beyond"), project.beyond);
  json.end_object();
  output.out += std::move(json).take() + "\n";
}

enum class Answer : unsigned char { yes, no, nobody };

Answer ask(std::string_view question) {
  if (!sys::is_terminal(STDIN_FILENO) || !sys::is_terminal(STDERR_FILENO)) return Answer::nobody;
  if (!sys::write_all(STDERR_FILENO, question)) return Answer::nobody;
  std::string line;
  char c = 0;
  while (line.size() < 16 && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') line += c;
  const std::string answer = to_lower(trim(line));
  return answer == "y" || answer == "yes" ? Answer::yes : Answer::no;
}

int keep(const ProjectEntry& project, const Arguments& arguments, Output& output) {
  const Approval approval{.directory = project.directory,
                          .server = project.entry.server.name,
                          .hash = project.hash,
                          .policy = core::policy_lines(project.loaded.policy),
                          .date = now()};
  if (auto kept = Approvals(approvals_directory()).keep(approval); !kept) {
    return fail(kept.error(), output);
  }
  if (arguments.has("--json")) write_json(project, true, output);
  output.err += format("approved; a change of it has to be approved again\n");
  return Exit::ok;
}

int approve(const Arguments& arguments, Output& output) {
  const std::string& name = arguments.operands.front();
  auto found = find_entries(name, arguments, output);
  if (!found) return found.error();
  if (found->empty() || found->front().layer != clients::Layer::project) {
    return usage_error(format("./capgate.yaml has no server {}", quoted(name)),
                       "approve is for what a project's file adds; run it in the project's "
                       "directory",
                       output);
  }
  const auto project = review_project(arguments, *found, {}, output);
  if (!project) return project.error();
  if (project->beyond.empty()) {
    if (arguments.has("--json")) write_json(*project, false, output);
    output.err += format("{} grants nothing beyond your own configuration: nothing to approve\n",
                         escape_for_terminal(project->entry.file));
    return Exit::ok;
  }
  if (arguments.has("--yes")) {
    output.err += shown(*project);
    return keep(*project, arguments, output);
  }
  switch (ask(shown(*project) + "Approve this? [y/N] ")) {
    case Answer::yes: return keep(*project, arguments, output);
    case Answer::no:
      if (arguments.has("--json")) write_json(*project, false, output);
      output.err += "not approved\n";
      return Exit::usage;
    case Answer::nobody: break;
  }
  output.err += shown(*project);
  if (arguments.has("--json")) write_json(*project, false, output);
  return usage_error("there is no terminal to ask on",
                     format("if this is meant: capgate approve {} --yes", name), output);
}

int run(const Arguments& arguments, Output& output) {
  const bool is_other = arguments.has("--list") || arguments.has("--revoke");
  if (arguments.operands.empty() == !is_other) {
    return usage_error(is_other ? "--list and --revoke take no NAME besides" : "approve needs NAME",
                       "see capgate approve --help", output);
  }
  if (arguments.has("--list")) return list(arguments, output);
  if (arguments.has("--revoke")) return revoke(arguments, output);
  return approve(arguments, output);
}

}  // namespace

Command approve_command() {
  return {
      .name = "approve",
      .operands = "[NAME]",
      .summary = "Approve what a project's capgate.yaml grants beyond your own configuration.",
      .least_operands = 0,
      .most_operands = 1,
      .options = options,
      .details =
          "A project's ./capgate.yaml only narrows what your own configuration grants. What it\n"
          "adds holds after this: the whole policy is shown, and what you approve is kept in\n"
          "$XDG_STATE_HOME/capgate/approved, where no server can write. A changed entry,\n"
          "manifest, variable, secret or command has to be approved again.\n"
          "Exit: 0 ok, 2 usage, not approved or nobody to ask, 3 unreadable, 4 mistakes.",
      .examples =
          "  capgate approve github            asks\n"
          "  capgate approve github --yes      without a terminal\n"
          "  capgate approve --list --json\n"
          "  capgate approve --revoke github",
      .run = run};
}

}  // namespace capgate::cli
