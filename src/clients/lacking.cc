#include "clients/lacking.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "base/format.h"
#include "base/ranges.h"
#include "clients/catalog.h"
#include "clients/narrow.h"
#include "clients/package.h"
#include "secrets/secret.h"
#include "text/json.h"

namespace capgate::clients {
namespace {

using core::Capability;
using core::Declared;
using core::Manifest;

// ".../node_modules/@scope/name/dist/index.js" is of npm:@scope/name.
std::optional<Package> package_at(std::string_view path) {
  constexpr std::string_view folder = "/node_modules/";
  const std::size_t at = path.rfind(folder);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = path.substr(at + folder.size());
  std::size_t end = rest.find('/');
  if (rest.starts_with('@') && end != std::string_view::npos) end = rest.find('/', end + 1);
  if (end == std::string_view::npos) return std::nullopt;
  auto package = parse_package(format("npm:{}", rest.substr(0, end)));
  if (!package) return std::nullopt;
  return *std::move(package);
}

// Programs of packages are links, as in node_modules/.bin.
std::string real_path(const std::string& path) {
  char found[PATH_MAX];
  return ::realpath(path.c_str(), found) == nullptr ? path : std::string(found);
}

// One entry is parsed, not all: this is on the way to every start of a package.
std::optional<CatalogEntry> entry_of(const Package& package) {
  const std::string name = format(":{}", package.name);
  for (const std::string_view text : catalog_texts()) {
    if (!text.contains(name)) continue;
    auto entry = parse_entry(std::string(text));
    if (!entry) continue;
    const bool is_for_it = std::ranges::any_of(entry->packages, [&](const Package& known) {
      return known.registry == package.registry && known.name == package.name;
    });
    if (is_for_it) return *std::move(entry);
  }
  return std::nullopt;
}

struct Known {
  CatalogEntry entry;
  std::vector<std::string> arguments;  // of the server
};

// Of the words, the first one and the next that is no option can be the server's own program.
std::optional<Known> find_known(const std::vector<std::string>& command) {
  if (auto started = package_of(command)) {
    auto entry = entry_of(started->package);
    if (!entry) return std::nullopt;
    return Known{.entry = *std::move(entry), .arguments = std::move(started->arguments)};
  }
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (i > 0 && word.starts_with('-')) continue;
    const auto package = word.contains('/') ? package_at(real_path(word)) : std::nullopt;
    if (auto entry = package ? entry_of(*package) : std::nullopt) {
      const auto next = command.begin() + static_cast<std::ptrdiff_t>(i) + 1;
      return Known{.entry = *std::move(entry), .arguments = {next, command.end()}};
    }
    if (i > 0) break;
  }
  return std::nullopt;
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// Of the environment only what binds something is copied, and wiped again: an address may hold a
// password.
Checked<core::Bindings> bind(const Known& known, const Start& start) {
  CommandContext context{
      .arguments = known.arguments, .home = start.home, .directory = start.directory};
  context.environment.reserve(known.entry.environment.size());
  for (const std::string_view variable : start.environment) {
    if (std::ranges::find(known.entry.environment, name_of(variable), &BindingRule::source) !=
        known.entry.environment.end()) {
      context.environment.emplace_back(variable);
    }
  }
  auto out = bind_command(known.entry, context);
  for (std::string& variable : context.environment) secrets::wipe(variable);
  return out;
}

std::optional<Manifest> manifest_of(const Known& known, const Start& start) {
  auto bindings = bind(known, start);
  if (!bindings) return std::nullopt;
  Present present{.bindings = *bindings};
  present.environment.reserve(start.environment.size());
  for (const std::string_view variable : start.environment) {
    present.environment.emplace_back(name_of(variable));
  }
  const auto document = text::parse_json(manifest_for(known.entry, present));
  if (!document) return std::nullopt;
  bindings->push_back({.name = "HOME", .values = {start.home}});
  auto manifest = core::parse_manifest(*document, *bindings);
  if (!manifest) return std::nullopt;
  return *std::move(manifest);
}

bool is_counted(const Capability& capability, const Manifest& has) {
  if (std::holds_alternative<core::LimitCapability>(capability)) return false;
  if (const auto* clock = std::get_if<core::ClockCapability>(&capability)) {
    return clock->source != core::ClockCapability::Source::system;
  }
  const auto* variable = std::get_if<core::EnvCapability>(&capability);
  if (variable == nullptr) return true;
  return std::ranges::none_of(has.declared, [&](const Declared& declared) {
    const auto* own = std::get_if<core::EnvCapability>(&declared.capability);
    return own != nullptr && own->name == variable->name;
  });
}

}  // namespace

sandbox::Lacking find_lacking(const Manifest& manifest, const Start& start) {
  const auto known = find_known(start.command);
  if (!known) return {};
  auto wanted = manifest_of(*known, start);
  if (!wanted) return {};
  std::erase_if(wanted->declared, [&](const Declared& declared) {
    return !is_counted(declared.capability, manifest);
  });
  return {.entry = known->entry.name, .capabilities = grants_beyond(manifest, *wanted)};
}

}  // namespace capgate::clients
