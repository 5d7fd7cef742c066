#include "cli/candidate.h"

#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/exit.h"
#include "cli/live.h"
#include "cli/profile.h"
#include "cli/project.h"

namespace capgate::cli {
namespace {

using clients::FoundServer;

std::expected<Candidate, int> of_project(const std::vector<FoundServer>& found,
                                         const std::vector<std::string>& command,
                                         const Arguments& arguments, Output& output) {
  auto project = review_project(arguments, found, command, output);
  if (!project) return std::unexpected(project.error());
  Candidate out{.server = project->entry.server.name,
                .file = project->entry.file,
                .scope = project->directory,
                .is_of_project = true,
                .loaded = std::move(project->loaded),
                .command = command.empty() ? project->entry.server.command : command,
                .catalog_text = catalog_text(project->entry, project->manifest_text),
                .hash = project->hash,
                .notes = project->entry.server.notes,
                .beyond = std::move(project->beyond)};
  if (out.beyond.empty() && found.size() > 1) {
    out.base_entry = found[1];
    out.base = std::move(project->base);
  }
  return out;
}

}  // namespace

std::expected<Candidate, int> candidate_of_entry(const std::string& name,
                                                 const std::vector<std::string>& command,
                                                 const Arguments& arguments, Output& output) {
  auto found = find_entries(name, arguments, output);
  if (!found) return std::unexpected(found.error());
  if (found->empty()) {
    return std::unexpected(usage_error(
        format("no capgate.yaml has a server {}", quoted(name)),
        "a project's is found in its directory, another one with --config FILE", output));
  }
  const FoundServer& entry = found->front();
  if (auto checked = check_may_run(entry, output); !checked) {
    return std::unexpected(checked.error());
  }
  if (entry.layer == clients::Layer::project) return of_project(*found, command, arguments, output);
  std::vector<std::string> runs = command.empty() ? entry.server.command : command;
  auto loaded = load_entry(arguments, entry, runs, output);
  if (!loaded) return std::unexpected(loaded.error());
  std::string scope = approval_scope(entry);
  std::string hash = clients::approval_hash(entry.server, scope, loaded->manifest_text);
  return Candidate{.server = name,
                   .file = entry.file,
                   .scope = std::move(scope),
                   .loaded = std::move(loaded->loaded),
                   .command = std::move(runs),
                   .catalog_text = catalog_text(entry, loaded->manifest_text),
                   .hash = std::move(hash),
                   .notes = entry.server.notes};
}

std::expected<Candidate, int> candidate_of_manifest(const std::string& name,
                                                    const std::string& file,
                                                    const std::vector<std::string>& command,
                                                    const Arguments& arguments, Output& output) {
  auto loaded = load(arguments, {.manifest = file, .home = home_directory()}, output);
  if (!loaded) return std::unexpected(loaded.error());
  std::string server = name.empty() ? loaded->manifest.name : name;
  if (!clients::is_server_name(server)) {
    return std::unexpected(usage_error(format("a server cannot be called {}", quoted(server)),
                                       "write letters, digits, '-', '_' and '.'", output));
  }
  return Candidate{.server = std::move(server),
                   .file = file,
                   .scope = "",
                   .loaded = *std::move(loaded),
                   .command = command};
}

std::expected<clients::Pin, int> live_pin(const Candidate& candidate, const Arguments& arguments,
                                          Output& output) {
  auto pin = pin_of(candidate.subject(), output);
  if (!pin) return pin;
  LiveWish wish{
      .server = candidate.server, .policy = candidate.loaded.policy, .command = candidate.command};
  if (auto read = read_live_options(arguments, wish, output); !read) {
    return std::unexpected(read.error());
  }
  const auto answer = ask_live(wish, output);
  if (!answer) return std::unexpected(answer.error());
  for (const std::string& note : answer->notes) output.err += format("note: {}\n", note);
  pin->protocol = answer->protocol;
  pin->tools = pinned_tools(answer->tools);
  pin->instructions = answer->instructions;
  pin->declares = answer->declares;
  if (!answer->again) return pin;
  const auto change = clients::diff_tools(*pin->tools, pinned_tools(*answer->again));
  if (change.empty()) return pin;
  output.err += format(
      "capgate: {} lists other tools when it is asked again:\n{}help: what it says cannot be "
      "approved, for it does not stay what it is\n",
      candidate.server, print(change));
  return std::unexpected(Exit::integrity);
}

}  // namespace capgate::cli
