#include "cli/wrap_plan.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "clients/catalog.h"
#include "clients/package.h"
#include "core/sensitive.h"
#include "secrets/provider.h"

namespace capgate::cli {
namespace {

using clients::ServerEntry;
using Kind = ServerPlan::Kind;

constexpr std::size_t longest_name = 64;
constexpr int most_names = 1000;

void leave(ServerPlan& plan, Kind kind, std::string reason) {
  plan.kind = kind;
  plan.reason = std::move(reason);
}

std::vector<std::string> environment_of(const ServerEntry& server) {
  std::vector<std::string> out;
  out.reserve(server.environment.size());
  for (const auto& variable : server.environment) {
    out.push_back(format("{}={}", variable.name, variable.value));
  }
  return out;
}

const clients::EnvironmentEntry& variable_of(const ServerEntry& server, std::string_view name) {
  return *std::ranges::find(server.environment, name, &clients::EnvironmentEntry::name);
}

// Why the store or the file could not give the very same value back; empty: it can.
std::string_view why_not_sealable(const clients::EnvironmentEntry& variable) {
  const bool is_name =
      std::ranges::all_of(variable.name, [](char c) { return is_alnum(c) || c == '_'; });
  if (!is_name) return "the store takes letters, digits and underscores as a name";
  if (!variable.plain) return "its spelling in the file could not be restored";
  if (variable.value.size() > secrets::longest_value) return "it is too long";
  if (variable.value.find_first_of(std::string_view("\0\r\n", 3)) != std::string::npos) {
    return "it has a line break in it";
  }
  return {};
}

std::string name_with(std::string_view base, std::string_view suffix) {
  return format("{}{}", base.substr(0, longest_name - suffix.size()), suffix);
}

std::vector<std::string> sealed_values(const ServerEntry& server, const ServerPlan& plan) {
  std::vector<std::string> out;
  out.reserve(plan.sealed.size());
  for (const std::string& name : plan.sealed) out.push_back(variable_of(server, name).value);
  return out;
}

std::string directory_for(const ServerEntry& server, const ClientDocument& document,
                          const clients::Surroundings& surroundings) {
  if (server.directory.starts_with('/')) return server.directory;
  if (server.section.starts_with('/')) return server.section;
  const std::string& path = document.opened.path;
  const bool is_of_project =
      surroundings.directory != surroundings.home && path.starts_with(surroundings.directory + "/");
  return is_of_project ? surroundings.directory : surroundings.home;
}

bool has_token(const ServerEntry& server) {
  return std::ranges::any_of(server.environment, [](const auto& variable) {
    return !is_reference(variable.value) && core::is_secret_name(variable.name);
  });
}

std::string first_mistake(const Diagnostics& mistakes) {
  const Diagnostic& first = mistakes.front();
  return first.help.empty() ? first.message : format("{}; {}", first.message, first.help);
}

std::string reason_of(const clients::ConfigProblem& problem) {
  if (problem.diagnostics.empty()) return problem.message;
  return format("{}: {}", problem.file, first_mistake(problem.diagnostics));
}

}  // namespace

bool is_reference(std::string_view value) {
  return value.empty() || value.starts_with('$') || value.contains("${") ||
         value.starts_with("store:");
}

std::vector<ServerPlan> Planner::plan(const ClientDocument& document, const ClientDocuments& all) {
  std::vector<ServerPlan> out;
  add_used(document);
  for (const ClientDocument& other : all.documents) add_used(other);
  for (std::size_t i = 0; i < document.file.servers.size(); ++i) {
    if (is_wanted(all, document.file.servers[i].name)) {
      out.push_back(plan_server(document, i));
    } else {
      out.push_back({.kind = Kind::not_named, .server = i, .reason = "it was not named"});
    }
  }
  return out;
}

void Planner::add_used(const ClientDocument& document) {
  for (const ServerEntry& server : document.file.servers) {
    if (!server.profile.empty()) used_.push_back(server.profile);
  }
}

ServerPlan Planner::plan_server(const ClientDocument& document, std::size_t index) {
  const ServerEntry& server = document.file.servers[index];
  ServerPlan plan{.server = index};
  if (!server.profile.empty()) {
    leave(
        plan, Kind::wrapped,
        format("it is wrapped already, with the profile {}{}", escape_for_terminal(server.profile),
               options_.seals && has_token(server)
                   ? "; its tokens stay in the file: unwrap it, then wrap it with --seal"
                   : ""));
  } else if (server.transport == clients::Transport::http) {
    leave(plan, Kind::http, "it is reached over HTTP: its code does not run on this machine");
  } else if (server.disabled) {
    leave(plan, Kind::disabled, "the client does not start it (disabled)");
  } else if (!server.problem.empty()) {
    leave(plan, Kind::problem, server.problem);
  } else {
    find_policy(server, document, plan);
    if (plan.kind == Kind::wrap) name_profile(server, document, plan);
  }
  return plan;
}

void Planner::find_policy(const ServerEntry& server, const ClientDocument& document,
                          ServerPlan& plan) {
  plan.profile = {.client = document.name(), .server = server.name, .command = server.command};
  const auto command = clients::package_of(server.command);
  PolicyView view;
  if (command) {
    plan.package = command->package;
    plan.installs = options_.installs;
    const auto installed = clients::find_installed(options_.store, *command);
    plan.is_installed = installed && installed->has_value();
    const std::string version = plan.is_installed ? (*installed)->locked.version : "";
    if (const auto* entry = clients::find_entry(command->package, version)) {
      const std::vector<std::string> environment = environment_of(server);
      const auto bindings = clients::bind_command(
          *entry, {.arguments = command->arguments,
                   .environment = environment,
                   .home = options_.surroundings.home,
                   .directory = directory_for(server, document, options_.surroundings)});
      if (!bindings) return leave(plan, Kind::problem, first_mistake(bindings.error()));
      auto seen = view_catalog_policy(
          *entry, *bindings, {.home = options_.surroundings.home, .environment = environment});
      if (!seen) return leave(plan, Kind::problem, seen.error());
      view = *std::move(seen);
      plan.profile.manifest = format("{}{}", clients::catalog_prefix, entry->name);
      plan.profile.variables = *bindings;
      plan.profile.notes = entry->notes;
    }
  }
  plan.policy = view.lines;
  plan.profile.policy = view.lines;
  seal(server, view, plan);
}

void Planner::seal(const ServerEntry& server, const PolicyView& view, ServerPlan& plan) {
  for (const auto& variable : server.environment) {
    const bool is_injected = contains(view.injected, variable.name);
    if (is_reference(variable.value) || (!is_injected && !core::is_secret_name(variable.name)))
      continue;
    plan.plain_secrets.push_back(variable.name);
    if (!options_.seals) continue;
    if (const std::string_view why = why_not_sealable(variable); !why.empty()) {
      plan.unsealable.push_back(format("{} stays in the file: {}", variable.name, why));
      continue;
    }
    plan.sealed.push_back(variable.name);
    auto& names = is_injected ? plan.profile.secrets : plan.profile.unused_secrets;
    names.push_back(variable.name);
  }
  plan.profile.seal = !plan.profile.secrets.empty() && view.is_sealable;
}

// NAME, NAME-CLIENT, NAME-CLIENT-2 ...: the first one that is free or says the same.
void Planner::name_profile(const ServerEntry& server, const ClientDocument& document,
                           ServerPlan& plan) {
  const std::string base = clients::profile_name(server.name);
  for (int number = 0; number < most_names && plan.kind == Kind::wrap; ++number) {
    const std::string suffix = number == 0   ? ""
                               : number == 1 ? format("-{}", document.id())
                                             : format("-{}-{}", document.id(), number);
    if (try_name(name_with(base, suffix), server, plan)) return;
  }
  if (plan.kind == Kind::wrap) leave(plan, Kind::problem, "every name for its profile is taken");
}

bool Planner::try_name(const std::string& name, const ServerEntry& server, ServerPlan& plan) {
  plan.profile.name = name;
  plan.profile_file = format("{}/servers/{}.yaml", options_.places.config, name);
  plan.writes_profile = false;
  plan.replaces_profile = false;
  const std::vector<std::string> values = sealed_values(server, plan);
  for (const Given& given : given_) {
    if (given.plan.profile.name != name) continue;
    if (!given.plan.profile.says_the_same(plan.profile) || given.values != values) return false;
    plan.profile_file = given.plan.profile_file;
    plan.policy = given.plan.policy;
    plan.writes_profile = given.plan.writes_profile;
    plan.replaces_profile = given.plan.replaces_profile;
    return true;
  }
  const auto found = clients::find_server(name, options_.places);
  if (!found) {
    plan.is_failure = true;
    leave(plan, Kind::problem, reason_of(found.error()));
    return false;
  }
  plan.writes_profile = found->empty();
  if (!found->empty() && !take_found(found->front(), server, plan)) return false;
  given_.push_back({.plan = plan, .values = values});
  return true;
}

// Another server's is never changed: it would lose its policy, and the store its secrets.
bool Planner::take_printed(const clients::FoundServer& found, ServerPlan& plan) {
  const bool is_anothers =
      contains(used_, plan.profile.name) || !clients::is_for_client_of(*found.text, plan.profile);
  if (is_anothers) {
    return plan.sealed.empty() && clients::prints_the_same(*found.text, plan.profile);
  }
  plan.replaces_profile = *found.text != clients::print_profile(plan.profile);
  plan.writes_profile = plan.replaces_profile;
  return true;
}

// An entry that is there already holds, if it is of this command. What `wrap` itself wrote and
// nobody changed since is brought up to date.
bool Planner::take_found(const clients::FoundServer& found, const ServerEntry& server,
                         ServerPlan& plan) {
  const clients::ServerConfig& entry = found.server;
  if (!entry.command.empty() && entry.command != server.command) return false;
  if (!entry.enabled) {
    leave(plan, Kind::disabled, format("{} says enabled: false", escape_for_terminal(found.file)));
    return false;
  }
  if (found.file == plan.profile_file && clients::is_as_printed(*found.text)) {
    return take_printed(found, plan);
  }
  const auto view = view_policy(
      found, {.home = options_.surroundings.home, .environment = environment_of(server)});
  if (!view) {
    leave(plan, Kind::problem, format("{}: {}", escape_for_terminal(found.file), view.error()));
    return false;
  }
  plan.profile_file = found.file;
  plan.policy = view->lines;
  // It is a person's: only what it takes from the store already can leave the client's file.
  std::erase_if(plan.sealed, [&](const std::string& name) {
    if (contains(entry.secrets, format("{}=store:{}", name, name))) return false;
    plan.unsealable.push_back(
        format("{} stays in the file: write secrets: {{{}: \"store:{}\"}} "
               "into {} first",
               name, name, name, escape_for_terminal(found.file)));
    return true;
  });
  return true;
}

std::vector<clients::Change> seals_of(const std::vector<ServerPlan>& plans) {
  std::vector<clients::Change> out;
  for (const ServerPlan& plan : plans) {
    if (plan.kind != Kind::wrap) continue;
    for (const std::string& name : plan.sealed) {
      out.push_back({.kind = clients::Change::Kind::set_environment,
                     .server = plan.server,
                     .name = name,
                     .value = format("store:{}", name)});
    }
  }
  return out;
}

std::vector<clients::Change> changes_of(const std::vector<ServerPlan>& plans,
                                        std::string_view self) {
  std::vector<clients::Change> out = seals_of(plans);
  for (const ServerPlan& plan : plans) {
    if (plan.kind != Kind::wrap) continue;
    out.push_back({.kind = clients::Change::Kind::wrap,
                   .server = plan.server,
                   .prefix = {std::string(self), "run", "--profile", plan.profile.name, "--"}});
  }
  return out;
}

}  // namespace capgate::cli
