// capgate unwrap: what wrap did, undone to the byte.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "cli/sealed_files.h"
#include "cli/secret_store.h"
#include "cli/wrap_work.h"
#include "cli/wrapped_files.h"

namespace capgate::cli {
namespace {

using clients::Change;
using Kind = ServerPlan::Kind;

constexpr Option options[] = {
    {.name = "--dry-run", .help = "show what would be written, and write nothing"},
    {.name = "--yes", .help = "write without asking", .alias = "-y"},
    {.name = "--unseal", .help = "put secrets also into a file that wrap did not take them from"},
    json_option,
};

// Where the secrets may go that the file names.
struct Giving {
  std::string target;
  bool to_any_file = false;
};

ServerPlan plan_server(const clients::ServerEntry& server, std::size_t index,
                       const Giving& giving) {
  ServerPlan plan{.kind = Kind::unwrap, .server = index};
  plan.profile.name = server.profile;
  if (server.profile.empty()) {
    plan.kind = Kind::not_wrapped;
    plan.reason = "it is not wrapped";
  } else if (!server.problem.empty()) {
    plan.kind = Kind::problem;
    plan.reason = server.problem;
  }
  for (const auto& variable : server.environment) {
    if (variable.value == format("store:{}", variable.name)) plan.sealed.push_back(variable.name);
  }
  const bool may_have = plan.sealed.empty() || giving.to_any_file ||
                        was_sealed({.target = giving.target, .profile = server.profile});
  if (plan.kind == Kind::unwrap && !may_have) {
    plan.kind = Kind::problem;
    plan.is_failure = true;
    plan.reason = "wrap did not take its secrets from this file; if it is yours: --unseal";
  }
  return plan;
}

// `values` are those of the secrets, in order; without them each is shown as it is.
std::vector<Change> changes_of(const FileWork& work, const std::vector<std::string>& values) {
  std::vector<Change> out;
  std::size_t next = 0;
  for (const ServerPlan& plan : work.plans) {
    if (plan.kind != Kind::unwrap) continue;
    out.push_back({.kind = Change::Kind::unwrap, .server = plan.server});
    for (const std::string& name : plan.sealed) {
      out.push_back({.kind = Change::Kind::set_environment,
                     .server = plan.server,
                     .name = name,
                     .value = next < values.size() ? values[next] : "***"});
      ++next;
    }
  }
  return out;
}

std::vector<ServerPlan> plan(const ClientDocument& document, const ClientDocuments& all,
                             bool to_any_file) {
  const Giving giving{.target = document.opened.target, .to_any_file = to_any_file};
  std::vector<ServerPlan> out;
  const auto& servers = document.file.servers;
  out.reserve(servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    out.push_back(is_wanted(all, servers[i].name)
                      ? plan_server(servers[i], i, giving)
                      : ServerPlan{.kind = Kind::not_named, .server = i});
  }
  return out;
}

// A server whose values the store does not give stays wrapped: it would not work without them.
int take_secrets(FileWork& work, std::vector<std::string>& values, Output& output) {
  int code = Exit::ok;
  for (ServerPlan& plan : work.plans) {
    if (plan.kind != Kind::unwrap || plan.sealed.empty()) continue;
    const auto store = SecretStore::open(output);
    std::vector<std::string> taken;
    for (const std::string& name : plan.sealed) {
      const auto value = store ? store->get({.server = plan.profile.name, .name = name}, output)
                               : std::expected<std::string, int>(std::unexpected(store.error()));
      if (!value) break;
      taken.push_back(*value);
    }
    if (taken.size() == plan.sealed.size()) {
      std::ranges::move(taken, std::back_inserter(values));
      continue;
    }
    const std::string& name = work.document.file.servers[plan.server].name;
    output.err += format("capgate: {} stays wrapped: the store does not give {} back\n",
                         escape_for_terminal(name), plan.sealed[taken.size()]);
    plan.kind = Kind::problem;
    plan.reason = "the store does not give its secrets back";
    code = Exit::unreadable;
  }
  return code;
}

// The backups that hold what the file holds again; that of a sealed file has no values.
void remove_superfluous(const FileWork& work, std::string_view text) {
  clients::remove_backups(work.document.opened, text);
  std::vector<Change> changes = changes_of(work, {});
  std::erase_if(changes, [](const Change& change) { return change.kind != Change::Kind::unwrap; });
  const auto sealed = clients::apply(work.document.file, changes);
  if (sealed) clients::remove_backups(work.document.opened, *sealed);
}

// Two servers of the file may share a profile.
void forget_unwrapped(const FileWork& work) {
  const auto& servers = work.document.file.servers;
  if (std::ranges::none_of(work.plans, [&](const ServerPlan& plan) {
        return plan.kind != Kind::unwrap && !servers[plan.server].profile.empty();
      })) {
    forget_wrapped(work.document.opened.target);
  }
  for (const ServerPlan& plan : work.plans) {
    if (plan.kind != Kind::unwrap || plan.sealed.empty()) continue;
    const bool is_used = std::ranges::any_of(work.plans, [&](const ServerPlan& other) {
      return other.kind != Kind::unwrap && servers[other.server].profile == plan.profile.name;
    });
    if (is_used) continue;
    forget_sealed({.target = work.document.opened.target, .profile = plan.profile.name});
  }
}

int write(FileWork& work, Output& output) {
  flush(output);
  std::vector<std::string> values;
  const int code = take_secrets(work, values, output);
  const auto changes = changes_of(work, values);
  if (changes.empty()) return code;
  const auto text = clients::apply(work.document.file, changes);
  if (!text) {
    output.err +=
        format("capgate: {}: {}\nhelp: {}\n", escape_for_terminal(work.document.opened.path),
               text.error().message, text.error().help);
    return Exit::internal;
  }
  const auto done = clients::replace_file(work.document.opened, {.text = *text});
  if (!done) {
    say(done.error(), output);
    return code_of(done.error());
  }
  remove_superfluous(work, *text);
  forget_unwrapped(work);
  work.is_written = true;
  return code;
}

void say_done(const FileWork& work, Output& output) {
  output.err += format("capgate: wrote {}\n", escape_for_terminal(work.document.opened.path));
  for (const ServerPlan& plan : work.plans) {
    if (plan.kind != Kind::unwrap) continue;
    for (const std::string& name : plan.sealed) {
      output.err += format("capgate: the store still has it: capgate secret rm {} --server {}\n",
                           escape_for_terminal(name), escape_for_terminal(plan.profile.name));
    }
  }
  output.err += "capgate: policies stay where they are; restart the client\n";
}

int run(const Arguments& arguments, Output& output) {
  const WorkSteps steps{.command = "unwrap",
                        .nothing = "nothing is wrapped",
                        .plan =
                            [&](const ClientDocument& document, const ClientDocuments& all) {
                              return plan(document, all, arguments.has("--unseal"));
                            },
                        .changes = [](const FileWork& work) { return changes_of(work, {}); },
                        .write =
                            [](FileWork& work, Output& said) {
                              const int code = write(work, said);
                              if (work.is_written) say_done(work, said);
                              return code;
                            }};
  return work_through(arguments, steps, output);
}

}  // namespace

Command unwrap_command() {
  return {.name = "unwrap",
          .operands = "[CLIENT|FILE] [SERVER...]",
          .summary = "Undo what wrap did to an MCP client's configuration.",
          .most_operands = 100'000,
          .options = options,
          .details =
              "The original commands stand in the wrapped ones, so no other file is needed, and\n"
              "what was changed meanwhile stays. Values that wrap --seal took are put back from\n"
              "the store, into the file that they were taken from. Policies stay where they are.\n"
              "Exit: 0 ok, 2 usage, 3 a file or a secret cannot be read, or not be written,\n"
              "8 a file was changed meanwhile.",
          .examples =
              "  capgate unwrap --dry-run\n"
              "  capgate unwrap claude-desktop\n"
              "  capgate unwrap cursor github --yes",
          .run = run};
}

}  // namespace capgate::cli
