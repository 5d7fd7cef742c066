// Ready manifests for well-known servers, built into the program from catalog/*.json.
//
//   const CatalogEntry* entry = find_entry(package);           by package name and version range
//   const auto bindings = bind_command(*entry, arguments);     ROOTS = /home/me/Documents
//
// One file of the catalog:
//   {
//     "name": "filesystem",
//     "packages": ["npm:@modelcontextprotocol/server-filesystem@>=0.6.0"],
//     "arguments": {"rest": "ROOTS"},          positional words bind ${ROOTS}, one value each
//     "environment": {"MEMORY_FILE_PATH": "MEMORY_FILE"},   a variable of the config's env binds
//     one "defaults": {"MEMORY_FILE": "${HOME}/..."},           what it is where nothing is said
//     "notes": ["..."],
//     "manifest": { an ordinary manifest, docs/language.md }
//   }
// "arguments" may also name single words by place ("0": "DATABASE") or by option ("--root":
// "ROOT"); words grant nothing unless an entry says which variable they bind.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clients/package.h"
#include "core/variables.h"

namespace capgate::clients {

struct ArgumentRule {
  std::string word;  // "rest", a place ("0"), or an option ("--root")
  std::string variable;
};

struct CatalogEntry {
  std::string name;
  std::vector<Package> packages;
  std::vector<ArgumentRule> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // variable of the env -> of ours
  std::vector<std::pair<std::string, std::string>> defaults;
  std::vector<std::string> notes;
  std::string manifest;  // the text of its manifest, as JSON
};

// All entries, by name. Parsed on first use: `run` without a profile never pays for it.
[[nodiscard]] std::span<const CatalogEntry> catalog();
[[nodiscard]] const CatalogEntry* find_entry(std::string_view name);
// The entry for a package; with `version` (an installed one) only where its range holds it. A
// package asked for with a range and not yet installed matches by name.
[[nodiscard]] const CatalogEntry* find_entry(const Package& package, std::string_view version);

struct CommandContext {
  std::vector<std::string> arguments;    // of the server, after the package
  std::vector<std::string> environment;  // NAME=VALUE of the client's config
  std::string home;
  std::string directory;  // relative paths in arguments start here
};

// The variables that the entry's manifest needs. One that stays unbound is an error that names the
// argument or variable that would bind it.
[[nodiscard]] Checked<core::Bindings> bind_command(const CatalogEntry& entry,
                                                   const CommandContext& context);

// One file of the catalog, strictly. For the catalog itself and its tests.
[[nodiscard]] Checked<CatalogEntry> parse_entry(std::string text);

}  // namespace capgate::clients
