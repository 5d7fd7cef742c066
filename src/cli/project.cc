#include "cli/project.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/caller.h"
#include "clients/approvals.h"
#include "clients/narrow.h"
#include "clients/profile_file.h"
#include "core/merge.h"

namespace capgate::cli {
namespace {

using clients::FoundServer;
using clients::ServerConfig;

std::string_view name_of(std::string_view binding) { return binding.substr(0, binding.find('=')); }

// What the project's entry leaves open is the user's.
FoundServer inherit(FoundServer entry, const ServerConfig& base) {
  ServerConfig& own = entry.server;
  if (own.command.empty()) own.command = base.command;
  for (const std::string& secret : base.secrets) {
    const bool is_own = std::ranges::any_of(
        own.secrets, [&](const auto& each) { return name_of(each) == name_of(secret); });
    if (!is_own) own.secrets.push_back(secret);
  }
  for (const core::Binding& binding : base.variables) {
    if (core::first_value(own.variables, binding.name).empty()) own.variables.push_back(binding);
  }
  own.seal |= base.seal;
  return entry;
}

// Secrets and the command decide what runs outside and inside, whatever the policy says.
std::vector<std::string> other_words(const ServerConfig& own, const ServerConfig& base,
                                     const std::vector<std::string>& command) {
  std::vector<std::string> out;
  for (const std::string& secret : own.secrets) {
    if (!contains(base.secrets, secret)) {
      out.push_back(format("secrets: {}", escape_for_terminal(secret)));
    }
  }
  if (command.empty() && !own.command.empty() && own.command != base.command) {
    out.push_back(format("command: {}", clients::print_command(own.command)));
  }
  return out;
}

std::expected<void, int> merge_again(Loaded& loaded, const Arguments& arguments, Output& output) {
  std::optional<std::uint32_t> tool;
  if (!loaded.options.tool.empty()) tool = loaded.manifest.find_tool(loaded.options.tool);
  auto policy = core::merge(loaded.manifest, tool);
  if (!policy) return std::unexpected(report(policy.error(), loaded.source(), arguments, output));
  loaded.policy = *std::move(policy);
  return {};
}

}  // namespace

std::string approvals_directory() { return state_base() + "/approved"; }

std::expected<ProjectEntry, int> review_project(const Arguments& arguments,
                                                const std::vector<FoundServer>& found,
                                                const std::vector<std::string>& command,
                                                Output& output) {
  const FoundServer& project = found.front();
  const ServerConfig nothing{};
  const ServerConfig& base = found.size() > 1 ? found[1].server : nothing;
  ProjectEntry out{.entry = inherit(project, base),
                   .loaded = {},
                   .beyond = {},
                   .hash = {},
                   .directory = project.file.substr(0, project.file.rfind('/')),
                   .manifest_text = {},
                   .base = {}};
  const std::vector<std::string>& runs = command.empty() ? out.entry.server.command : command;
  auto wanted = load_entry(arguments, out.entry, runs, output);
  if (!wanted) return std::unexpected(wanted.error());
  out.loaded = std::move(wanted->loaded);
  out.hash = clients::approval_hash(project.server, out.directory, wanted->manifest_text);
  out.manifest_text = std::move(wanted->manifest_text);
  core::Manifest users;
  if (found.size() > 1) {
    auto loaded = load_entry(arguments, found[1], runs, output);
    if (!loaded) return std::unexpected(loaded.error());
    users = loaded->loaded.manifest;
    out.base = *std::move(loaded);
  }
  out.beyond = clients::grants_beyond(users, out.loaded.manifest);
  std::ranges::move(other_words(project.server, base, command), std::back_inserter(out.beyond));
  if (!out.beyond.empty()) return out;
  clients::keep_bounds(users, out.loaded.manifest);
  if (auto merged = merge_again(out.loaded, arguments, output); !merged) {
    return std::unexpected(merged.error());
  }
  return out;
}

}  // namespace capgate::cli
