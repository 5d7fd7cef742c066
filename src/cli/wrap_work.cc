#include "cli/wrap_work.h"

#include <unistd.h>

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "cli/exit.h"
#include "cli/wrap_diff.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using Kind = ServerPlan::Kind;

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::wrap: return "wrap";
    case Kind::unwrap: return "unwrap";
    case Kind::wrapped: return "wrapped";
    case Kind::not_wrapped: return "not-wrapped";
    case Kind::http: return "http";
    case Kind::disabled: return "disabled";
    case Kind::not_named: return "not-named";
    case Kind::problem: return "problem";
  }
  return "";
}

std::string show_policy(const ServerPlan& plan) {
  const std::string file = escape_for_terminal(plan.profile_file);
  if (plan.policy.empty()) {
    return format(
        "    may nothing: {}; it will hardly work so\n"
        "    next: capgate run --profile {} --trace - shows what it is refused; allow what you "
        "want in\n"
        "          {}\n",
        plan.package ? format("unknown package {}", clients::print(*plan.package))
                     : "capgate does not know this program",
        plan.profile.name, file);
  }
  std::string out = format(
      "    may ({}{}):\n",
      plan.profile.manifest.empty() || !plan.writes_profile ? "" : plan.profile.manifest + ", ",
      file);
  for (const std::string& line : plan.policy) {
    out += format("      {}\n", escape_for_terminal(line));
  }
  return out;
}

std::string show_secrets(const ServerPlan& plan) {
  std::string out;
  for (const std::string& name : plan.sealed) {
    out += format("    {} moves into the encrypted store\n", escape_for_terminal(name));
  }
  for (const std::string& why : plan.unsealable) {
    out += format("    {}\n", escape_for_terminal(why));
  }
  if (!plan.sealed.empty() || !plan.unsealable.empty() || plan.plain_secrets.empty()) return out;
  return out + format("    {} in plain text in this file; --seal keeps {} encrypted\n",
                      escape_for_terminal(join(plan.plain_secrets, ", ")),
                      plan.plain_secrets.size() == 1 ? "it" : "them");
}

std::string show_server(const FileWork& work, const ServerPlan& plan) {
  const clients::ServerEntry& server = work.document.file.servers[plan.server];
  std::string name = escape_for_terminal(server.name);
  if (!server.section.empty()) name += format("  ({})", escape_for_terminal(server.section));
  if (plan.kind == Kind::not_named) return "";
  if (plan.kind != Kind::wrap && plan.kind != Kind::unwrap) {
    return format("  {}: left alone: {}\n", name, escape_for_terminal(plan.reason));
  }
  std::string out = format("  {}\n    {}\n", name, clients::print_command(server.command));
  if (plan.kind == Kind::wrap) out += show_policy(plan);
  if (plan.kind == Kind::wrap && plan.package && !plan.is_installed) {
    out += format("    {} {}\n", clients::print(*plan.package),
                  plan.installs ? "is installed once, in a sandbox, and then only read"
                                : "is not installed: capgate install does it");
  }
  if (plan.kind == Kind::wrap) out += show_secrets(plan);
  return out;
}

void write_strings(text::JsonWriter& json, std::string_view key,
                   const std::vector<std::string>& values) {
  json.key(key).begin_array();
  for (const std::string& value : values) json.string(value);
  json.end_array();
}

void write_server(const FileWork& work, const ServerPlan& plan, text::JsonWriter& json) {
  const clients::ServerEntry& server = work.document.file.servers[plan.server];
  json.begin_object().key("name").string(server.name);
  if (!server.section.empty()) json.key("section").string(server.section);
  json.key("action").string(kind_name(plan.kind));
  if (!plan.reason.empty()) json.key("reason").string(plan.reason);
  if (plan.kind == Kind::wrap || plan.kind == Kind::unwrap) {
    write_strings(json, "command", server.command);
    json.key("profile").string(plan.profile.name);
  }
  if (plan.kind == Kind::wrap) {
    json.key("profileFile").string(plan.profile_file);
    json.key("manifest");
    plan.profile.manifest.empty() ? json.null() : json.string(plan.profile.manifest);
    write_strings(json, "policy", plan.policy);
    json.key("package");
    plan.package ? json.string(clients::print(*plan.package)) : json.null();
    json.key("installed").boolean(plan.is_installed);
    write_strings(json, "plainSecrets", plan.plain_secrets);
  }
  write_strings(json, "storedSecrets", plan.sealed);
  json.end_object();
}

// For people, on stdout: the file, its servers, and the changes.
std::string show_work(const FileWork& work, Colour colour) {
  const ClientDocument& document = work.document;
  std::string out;
  const std::string path = escape_for_terminal(document.opened.path);
  out += document.client == nullptr ? format("{}\n", path)
                                    : format("{}  {}\n", document.client->name, path);
  if (document.file.servers.empty()) out += "  it has no servers\n";
  for (const ServerPlan& plan : work.plans) out += show_server(work, plan);
  if (!work.edits.empty()) {
    out += "\n" + show_diff(document.file, work.edits, document.opened.path, colour);
  }
  return out + "\n";
}

struct Summary {
  std::string_view command;
  bool is_dry = false;
  int code = 0;
};

// For programs.
std::string work_json(const std::vector<FileWork>& works, const Summary& summary) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("command").string(summary.command);
  json.key("dryRun").boolean(summary.is_dry);
  json.key("exitCode").number(static_cast<std::uint64_t>(summary.code));
  json.key("files").begin_array();
  for (const FileWork& work : works) {
    json.begin_object().key("client").string(work.document.id());
    json.key("path").string(work.document.opened.path);
    json.key("changes").boolean(!work.edits.empty()).key("written").boolean(work.is_written);
    json.key("backup");
    work.backup.empty() ? json.null() : json.string(work.backup);
    json.key("servers").begin_array();
    for (const ServerPlan& plan : work.plans) write_server(work, plan, json);
    json.end_array();
    json.key("diff").string(
        show_diff(work.document.file, work.edits, work.document.opened.path, Colour::off));
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

std::expected<FileWork, int> prepare(ClientDocument document, const ClientDocuments& all,
                                     const WorkSteps& steps, Output& output) {
  FileWork work{.document = std::move(document)};
  work.plans = steps.plan(work.document, all);
  auto edits = clients::edits(work.document.file, steps.changes(work));
  if (!edits) {
    output.err +=
        format("capgate: {}: {}\nhelp: {}\n", escape_for_terminal(work.document.opened.path),
               edits.error().message, edits.error().help);
    return std::unexpected(Exit::unreadable);
  }
  work.edits = *std::move(edits);
  return work;
}

// One file: asked about, if that is how it is, and written.
int finish(FileWork& work, Consent consent, const WorkSteps& steps, Output& output) {
  if (work.edits.empty()) return Exit::ok;
  if (const auto can = clients::check_replaceable(work.document.opened); !can) {
    say(can.error(), output);
    return code_of(can.error());
  }
  if (consent == Consent::only_shown || consent == Consent::refused) return Exit::ok;
  const std::string question = format("Write {}?", escape_for_terminal(work.document.opened.path));
  if (consent == Consent::asked && !ask(question, output)) {
    output.err += "capgate: left as it is\n";
    return Exit::ok;
  }
  return steps.write(work, output);
}

}  // namespace

int work_through(const Arguments& arguments, const WorkSteps& steps, Output& output) {
  auto all = read_clients(arguments, output);
  if (!all) return all.error();
  const bool is_json = arguments.has("--json");
  const Consent consent = consent_of(arguments);
  int code = all->code;
  std::vector<FileWork> works;
  for (ClientDocument& document : all->documents) {
    auto work = prepare(std::move(document), *all, steps, output);
    if (!work) {
      code = std::max(code, work.error());
      continue;
    }
    if (!is_json) output.out += show_work(*work, colour_of(STDOUT_FILENO));
    const bool has_failed = std::ranges::any_of(work->plans, &ServerPlan::is_failure);
    code = std::max({code, has_failed ? int{Exit::unreadable} : int{Exit::ok},
                     finish(*work, consent, steps, output)});
    works.push_back(*std::move(work));
  }
  const bool has_changes =
      std::ranges::any_of(works, [](const FileWork& work) { return !work.edits.empty(); });
  if (!has_changes && code == Exit::ok) output.err += format("capgate: {}\n", steps.nothing);
  if (has_changes && consent == Consent::refused) {
    code = std::max(code, refuse_without_terminal(steps.command, output));
  }
  if (is_json) {
    output.out += work_json(
        works, {.command = steps.command, .is_dry = consent == Consent::only_shown, .code = code});
  }
  return code;
}

}  // namespace capgate::cli
