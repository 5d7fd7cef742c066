#include "cli/entry.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/exit.h"
#include "clients/catalog.h"
#include "clients/entry_manifest.h"
#include "clients/store.h"
#include "clients/tree.h"
#include "core/path.h"

namespace capgate::cli {
namespace {

using clients::FoundServer;

std::string directory_if_known() {
  std::string out(4096, '\0');
  if (::getcwd(out.data(), out.size()) == nullptr) return "";
  out.resize(std::strlen(out.c_str()));
  return out;
}

// Empty where the caller says nothing sensible: then the user has no config.
std::string user_config() {
  const std::string config = variable("XDG_CONFIG_HOME");
  if (config.starts_with('/')) return config + "/capgate";
  const auto home = core::parse_plain_path(variable("HOME"));
  return home && *home != "/" ? *home + "/.config/capgate" : "";
}

int refuse(const FoundServer& entry, std::string_view message, std::string_view help,
           Output& output) {
  return usage_error(
      format("{}: {}: {}", escape_for_terminal(entry.file), entry.server.name, message), help,
      output);
}

struct NamedManifest {
  std::string name;
  std::string text;
  std::string decides;       // what an approval is of: the text before anything optional left it
  core::Bindings variables;  // of the entry, and what the catalog says where it says nothing
};

// Variables that the server is going to have: the caller's, and those of its secrets.
std::vector<std::string> present(const FoundServer& entry) {
  std::vector<std::string> out = entry.server.secrets;
  for (char** each = ::environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    out.emplace_back(text.substr(0, text.find('=')));  // without its value
  }
  return out;
}

// What is not installed yet has no version; `run` refuses it on its own.
std::expected<void, int> check_version(const FoundServer& entry, const clients::Package& known,
                                       const clients::PackageCommand& started, Output& output) {
  const auto found = clients::find_installed({.base = data_base()}, started);
  if (!found || !*found) return {};
  const std::string& version = (*found)->locked.version;
  if (clients::in_range(known.registry, known.range, version)) return {};
  return std::unexpected(refuse(
      entry,
      format("{} is for {}, and {} is installed", entry.server.manifest, print(known), version),
      "install a version that it is for, or write capabilities or a manifest of your own", output));
}

// Ready manifests are written and tested for certain packages; any other program would get rights
// that nobody thought of for it.
std::expected<void, int> check_packages(const FoundServer& entry,
                                        const clients::CatalogEntry& manifest,
                                        const std::vector<std::string>& command, Output& output) {
  if (command.empty()) return {};
  const auto started = clients::package_of(command);
  const auto known = std::ranges::find_if(manifest.packages, [&](const clients::Package& package) {
    return started && package.registry == started->package.registry &&
           package.name == started->package.name;
  });
  if (known != manifest.packages.end()) return check_version(entry, *known, *started, output);
  std::vector<std::string> names;
  names.reserve(manifest.packages.size());
  for (const clients::Package& package : manifest.packages) names.push_back(print(package));
  return std::unexpected(refuse(
      entry,
      format("{} is for {}, and the command starts {}", entry.server.manifest, join(names, " or "),
             started ? print(started->package) : std::string("no package that is known")),
      "start that package, or write capabilities or a manifest of your own", output));
}

std::expected<NamedManifest, int> read_catalog(const FoundServer& entry,
                                               const std::vector<std::string>& command,
                                               Output& output) {
  const std::string_view name =
      std::string_view(entry.server.manifest).substr(clients::catalog_prefix.size());
  const clients::CatalogEntry* manifest = clients::find_entry(name);
  if (manifest == nullptr) {
    std::vector<std::string_view> names;
    for (const clients::CatalogEntry& each : clients::catalog()) names.emplace_back(each.name);
    const auto meant = closest(name, names);
    return std::unexpected(refuse(
        entry, format("the catalog has no {}", quoted(name)),
        meant ? format("did you mean catalog:{}?", *meant) : "see capgate catalog list", output));
  }
  if (auto checked = check_packages(entry, *manifest, command, output); !checked) {
    return std::unexpected(checked.error());
  }
  core::Bindings variables = entry.server.variables;
  for (const auto& [name_of_ours, text] : manifest->defaults) {
    if (!core::first_value(variables, name_of_ours).empty()) continue;
    std::string value = text;
    constexpr std::string_view home = "${HOME}";
    if (value.starts_with(home)) value.replace(0, home.size(), home_directory());
    variables.push_back({.name = name_of_ours, .values = {std::move(value)}});
  }
  std::string text =
      clients::manifest_for(*manifest, {.bindings = variables, .environment = present(entry)});
  return NamedManifest{.name = entry.server.manifest,
                       .text = std::move(text),
                       .decides = manifest->manifest,
                       .variables = std::move(variables)};
}

bool lies_beside(std::string_view path, const std::string& config) {
  const std::string directory = config.substr(0, config.rfind('/') + 1);
  return path.starts_with(directory) &&
         !clients::file_inside(directory, path.substr(directory.size())).empty();
}

std::expected<NamedManifest, int> read_manifest(const FoundServer& entry,
                                                const std::vector<std::string>& command,
                                                Output& output) {
  const std::string& path = entry.server.manifest;
  if (path.starts_with(clients::catalog_prefix)) return read_catalog(entry, command, output);
  // What stands in a project's directory may have been put there by a server. A mistake is shown
  // with its line, to the client too: no other file of the user's is read for it.
  const bool is_project = entry.layer == clients::Layer::project;
  if (is_project && !lies_beside(path, entry.file)) {
    return std::unexpected(refuse(entry, "a project's manifest is a file in its directory",
                                  "move it there, or name it in your own configuration", output));
  }
  auto text = clients::read_regular_file(
      path, is_project ? clients::Links::are_refused : clients::Links::are_followed);
  if (!text) {
    output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(path),
                         std::strerror(text.error()));
    return std::unexpected(Exit::unreadable);
  }
  return NamedManifest{
      .name = path, .text = *text, .decides = *text, .variables = entry.server.variables};
}

// A misspelt variable would leave another one unbound, or bind nothing. A project's entry has those
// of the user's, too, and need not use them.
std::expected<void, int> check_variables(const FoundServer& entry, const Loaded& loaded,
                                         Output& output) {
  if (entry.layer == clients::Layer::project) return {};
  for (const core::Binding& binding : entry.server.variables) {
    if (contains(loaded.manifest.used_variables, binding.name)) continue;
    return std::unexpected(refuse(entry, format("the variable {} is not used", binding.name),
                                  "no capability holds it; check its name", output));
  }
  return {};
}

}  // namespace

clients::Places config_places(const Arguments& arguments) {
  return {.flag = std::string(arguments.value("--config").value_or("")),
          .directory = directory_if_known(),
          .config = user_config(),
          .home = home_directory()};
}

int report(const clients::ConfigProblem& problem, const Arguments& arguments, Output& output) {
  if (problem.text) {
    return report(problem.diagnostics, Source(problem.file, *problem.text), arguments, output);
  }
  output.err += format("capgate: {}\n", problem.message);
  return Exit::unreadable;
}

std::expected<std::vector<FoundServer>, int> find_entries(std::string_view name,
                                                          const Arguments& arguments,
                                                          Output& output) {
  auto found = clients::find_server(name, config_places(arguments));
  if (!found) return std::unexpected(report(found.error(), arguments, output));
  return *std::move(found);
}

std::expected<LoadedEntry, int> load_entry(const Arguments& arguments, const FoundServer& entry,
                                           const std::vector<std::string>& command,
                                           Output& output) {
  Wanted wanted{.manifest = {}, .home = home_directory(), .seal = entry.server.seal};
  std::string text;
  if (entry.server.manifest.empty()) {
    wanted.document =
        std::make_shared<const text::Document>(clients::entry_manifest(entry.server, entry.text));
    wanted.document_name = entry.file;
    wanted.variables = entry.server.variables;
  } else {
    auto manifest = read_manifest(entry, command, output);
    if (!manifest) return std::unexpected(manifest.error());
    text = std::move(manifest->decides);
    auto document =
        parse_document(manifest->name, text::share(std::move(manifest->text)), arguments, output);
    if (!document) return std::unexpected(document.error());
    wanted.document = *std::move(document);
    wanted.document_name = manifest->name;
    wanted.variables = std::move(manifest->variables);
  }
  auto loaded = load(arguments, wanted, output);
  if (!loaded) return std::unexpected(loaded.error());
  if (auto checked = check_variables(entry, *loaded, output); !checked) {
    return std::unexpected(checked.error());
  }
  return LoadedEntry{.loaded = *std::move(loaded), .manifest_text = std::move(text)};
}

std::string catalog_text(const FoundServer& entry, const std::string& manifest_text) {
  return entry.server.manifest.starts_with(clients::catalog_prefix) ? manifest_text : "";
}

}  // namespace capgate::cli
