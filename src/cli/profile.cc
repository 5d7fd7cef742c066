#include "cli/profile.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/entry.h"
#include "cli/project.h"
#include "clients/approvals.h"

namespace capgate::cli {
namespace {

using clients::FoundServer;
using clients::Layer;

bool says_policy(const Arguments& arguments) {
  return arguments.has("--manifest") || arguments.has("--allow");
}

Wanted wanted_by_flags(const Arguments& arguments) {
  return {.manifest = std::string(arguments.value("--manifest").value_or("")),
          .allow = arguments.values("--allow"),
          .home = home_directory()};
}

void add_manifest(const std::string& path, std::vector<sandbox::PolicyPlace>& places) {
  const bool is_file = !path.empty() && path != "-" && !path.starts_with(clients::catalog_prefix);
  if (is_file) places.push_back({.path = path});
}

std::expected<void, int> check_command(const ChosenPolicy& chosen, std::string_view where,
                                       Output& output) {
  if (!chosen.command.empty()) return {};
  return std::unexpected(usage_error(
      where.empty() ? std::string("run needs -- COMMAND ARGS...")
                    : format("{}: {} has no command", escape_for_terminal(where), chosen.server),
      "usage: capgate run [OPTIONS] -- COMMAND ARGS...", output));
}

std::expected<ChosenPolicy, int> by_flags(const Arguments& arguments, Output& output) {
  const Wanted wanted = wanted_by_flags(arguments);
  auto loaded = load(arguments, wanted, output);
  if (!loaded) return std::unexpected(loaded.error());
  ChosenPolicy out{.loaded = *std::move(loaded), .command = arguments.operands};
  add_manifest(wanted.manifest, out.places);
  if (auto checked = check_command(out, "", output); !checked) {
    return std::unexpected(checked.error());
  }
  return out;
}

// The entry's secrets and variables with a policy that the flags say. What a project says of those
// could only be judged together with its policy.
std::expected<ChosenPolicy, int> by_flags_for(const FoundServer& entry, const Arguments& arguments,
                                              Output& output) {
  Wanted wanted = wanted_by_flags(arguments);
  wanted.variables = entry.server.variables;
  wanted.seal = entry.server.seal;
  auto loaded = load(arguments, wanted, output);
  if (!loaded) return std::unexpected(loaded.error());
  ChosenPolicy out{.loaded = *std::move(loaded), .command = entry.server.command};
  add_manifest(wanted.manifest, out.places);
  out.secrets.only_declared = true;
  return out;
}

int not_approved(const ProjectEntry& project, bool was_approved, Output& output) {
  const std::string& name = project.entry.server.name;
  std::string text = format("{} says more for {} than your own configuration does{}:",
                            escape_for_terminal(project.entry.file), name,
                            was_approved ? ", and has changed since you approved it" : "");
  for (const std::string& line : project.beyond) {
    text += format("\n  {}", escape_for_terminal(line));
  }
  return usage_error(
      text, format("a project's file only narrows. If this is meant: capgate approve {}", name),
      output);
}

std::expected<ChosenPolicy, int> by_project(const std::vector<FoundServer>& found,
                                            const Arguments& arguments, Output& output) {
  auto project = review_project(arguments, found, arguments.operands, output);
  if (!project) return std::unexpected(project.error());
  ChosenPolicy out{.loaded = std::move(project->loaded),
                   .command = project->entry.server.command,
                   .secrets = {.bindings = project->entry.server.secrets}};
  out.catalog_text = catalog_text(project->entry, project->manifest_text);
  // What narrows is measured by it, so who could write it could widen.
  if (found.size() > 1) add_manifest(found[1].server.manifest, out.places);
  if (project->beyond.empty()) {
    if (found.size() > 1) out.base_entry = found[1];
    out.base = std::move(project->base);
    return out;
  }
  const clients::Approvals approvals(approvals_directory());
  const std::string& name = project->entry.server.name;
  const auto approved = approvals.find(project->directory, name);
  if (!approved) {
    return std::unexpected(
        usage_error(approved.error(), format("run capgate approve {} again", name), output));
  }
  if (!*approved || (*approved)->hash != project->hash) {
    return std::unexpected(not_approved(*project, approved->has_value(), output));
  }
  out.places.push_back({.path = approvals.file_of(project->directory, name)});
  return out;
}

std::expected<ChosenPolicy, int> by_entry(const FoundServer& entry, const Arguments& arguments,
                                          Output& output) {
  const std::vector<std::string>& command =
      arguments.operands.empty() ? entry.server.command : arguments.operands;
  auto loaded = load_entry(arguments, entry, command, output);
  if (!loaded) return std::unexpected(loaded.error());
  ChosenPolicy out{.loaded = std::move(loaded->loaded), .command = entry.server.command};
  out.catalog_text = catalog_text(entry, loaded->manifest_text);
  add_manifest(entry.server.manifest, out.places);
  return out;
}

// Which of the entries holds, and what it says.
std::expected<ChosenPolicy, int> choose(const std::vector<FoundServer>& found,
                                        const Arguments& arguments, Output& output) {
  const FoundServer& entry = found.front();
  // A project's entry narrows the next one, so both must let it run.
  const std::size_t holding = entry.layer == Layer::project ? 2 : 1;
  for (std::size_t i = 0; i < std::min(found.size(), holding); ++i) {
    if (auto checked = check_may_run(found[i], output); !checked) {
      return std::unexpected(checked.error());
    }
  }
  if (says_policy(arguments)) return by_flags_for(entry, arguments, output);
  if (entry.layer == Layer::project) return by_project(found, arguments, output);
  return by_entry(entry, arguments, output);
}

}  // namespace

std::expected<void, int> check_may_run(const FoundServer& entry, Output& output) {
  const std::string place = format("{}: {}", escape_for_terminal(entry.file), entry.server.name);
  if (!entry.server.url.empty()) {
    return std::unexpected(usage_error(format("{} is an HTTP server", place),
                                       "it does not run here: its client reaches it by its url",
                                       output));
  }
  if (!entry.server.enabled) {
    return std::unexpected(usage_error(format("{} has sandbox.enabled: false", place),
                                       "capgate starts nothing without its sandbox: remove the "
                                       "line, or start the server without capgate",
                                       output));
  }
  return {};
}

std::expected<ChosenPolicy, int> choose_policy(const Arguments& arguments, Output& output) {
  const auto name = arguments.value("--profile");
  if (!name) {
    if (!arguments.has("--config")) return by_flags(arguments, output);
    return std::unexpected(usage_error("--config without --profile names no server",
                                       "write --profile NAME, an entry of that file", output));
  }
  if (!clients::is_server_name(*name)) {
    return std::unexpected(usage_error(format("--profile cannot be {}", quoted(*name)),
                                       "write letters, digits, '-', '_' and '.'", output));
  }
  auto found = find_entries(*name, arguments, output);
  if (!found) return std::unexpected(found.error());
  if (says_policy(arguments)) {
    std::erase_if(*found, [](const FoundServer& each) { return each.layer == Layer::project; });
  }
  const bool has_entry = !found->empty();
  auto out = has_entry ? choose(*found, arguments, output) : by_flags(arguments, output);
  if (!out) return out;
  if (!has_entry) return out;
  const FoundServer& entry = found->front();
  out->server = *name;
  out->entry = entry;
  out->secrets.file = entry.file;
  if (entry.layer != Layer::project) out->secrets.bindings = entry.server.secrets;
  if (!arguments.operands.empty()) out->command = arguments.operands;
  if (auto checked = check_command(*out, entry.file, output); !checked) {
    return std::unexpected(checked.error());
  }
  return out;
}

}  // namespace capgate::cli
