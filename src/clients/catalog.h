// Ready manifests for well-known servers, built into the program from catalog/*.json.
//
//   const CatalogEntry* entry = find_entry(package, version);  by package name and version range
//   const auto bindings = bind_command(*entry, context);       ROOTS = /home/me/Documents
//   const std::string manifest = manifest_for(*entry, {.bindings = *bindings, .environment = env});
//
// One file of the catalog:
//   {
//     "name": "filesystem",
//     "packages": ["npm:@modelcontextprotocol/server-filesystem@>=0.6.0"],
//     "arguments": {"rest": "ROOTS"},                       words after the package
//     "environment": {"MEMORY_FILE_PATH": "MEMORY_FILE"},   variables of the client's configuration
//     "defaults": {"MEMORY_FILE": "${HOME}/notes"},         where nothing is said
//     "optional": ["API_KEY"],                              what the server can do without
//     "notes": ["..."],
//     "manifest": { an ordinary manifest, docs/language.md }
//   }
//
// "arguments" names words by place ("0" is the first, "rest" all that no place takes) or by option
// ("--root"). What a word or a variable of the environment binds:
//   "ROOT"                  ROOT, to a path; made absolute, ~ is the home directory
//   {"directory": "DIR"}    DIR, to the directory of the file that the path names
//   {"url": "DB"}           DB_HOST and DB_PORT, from the address
//   {"text": "BROWSER"}     BROWSER, to the word itself
//   null                    nothing: an option whose value is not needed
//   true                    nothing: an option without a value
// Words grant nothing unless an entry says which variable they bind. An entry that counts places
// knows all options: else the value of an unknown one could be taken for a path.
//
// "optional" lists variables, of the environment or of ours. A capability that needs one that is
// not there is left out of the manifest; without this it would be a refusal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "clients/package.h"
#include "core/grammar.h"

namespace capgate::clients {

struct BindingRule {
  enum class Kind : std::uint8_t { path, directory, url, text, ignored, flag };
  std::string source;  // "rest", a place ("0"), an option ("--root"), or a variable's name
  Kind kind = Kind::path;
  std::string variable;  // empty: binds nothing
};

struct CatalogEntry {
  std::string name;
  std::vector<Package> packages;
  std::vector<BindingRule> arguments;
  std::vector<BindingRule> environment;
  std::vector<std::pair<std::string, std::string>> defaults;
  std::vector<std::string> optional;
  std::vector<std::string> notes;
  std::string manifest;                // the text of its manifest, as JSON
  std::vector<std::string> variables;  // that the manifest uses, sorted; without HOME
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

// What the variables that an entry needs may come from, in words: "the first argument or the
// variable DATABASE_URL".
[[nodiscard]] std::string where_bound(const CatalogEntry& entry, std::string_view variable);

struct Present {
  core::Bindings bindings;
  std::vector<std::string> environment;  // NAME or NAME=VALUE: what is set, secrets included
};

// The manifest without the capabilities that need something optional that is not there.
[[nodiscard]] std::string manifest_for(const CatalogEntry& entry, const Present& present);

// One file of the catalog, strictly. For the catalog itself and its tests.
[[nodiscard]] Checked<CatalogEntry> parse_entry(std::string text);
// The files as they are built in.
[[nodiscard]] std::vector<std::string_view> catalog_texts();

}  // namespace capgate::clients
