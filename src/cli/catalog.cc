// capgate catalog: the manifests that come with capgate.
#include "clients/catalog.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/catalog_bind.h"
#include "cli/catalog_check.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using clients::CatalogEntry;
using text::JsonWriter;

constexpr std::string_view verbs[] = {"list", "show", "bind", "test"};
constexpr Option options[] = {json_option};

void write_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key).begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

std::vector<std::string> package_names(const CatalogEntry& entry) {
  std::vector<std::string> names;
  names.reserve(entry.packages.size());
  for (const clients::Package& package : entry.packages) names.push_back(print(package));
  return names;
}

std::string_view default_of(const CatalogEntry& entry, std::string_view variable) {
  for (const auto& [name, value] : entry.defaults) {
    if (name == variable) return value;
  }
  return {};
}

void write_entry(JsonWriter& json, const CatalogEntry& entry) {
  json.key("name").string(entry.name);
  write_texts(json, "packages", package_names(entry));
  json.key("variables").begin_array();
  for (const std::string& variable : entry.variables) {
    json.begin_object().key("name").string(variable);
    json.key("from").string(where_bound(entry, variable));
    const std::string_view usual = default_of(entry, variable);
    if (!usual.empty()) json.key("default").string(usual);
    json.key("optional").boolean(contains(entry.optional, variable)).end_object();
  }
  json.end_array();
  write_texts(json, "optional", entry.optional);
  write_texts(json, "notes", entry.notes);
}

int list(const Arguments& arguments, Output& output) {
  const auto entries = clients::catalog();
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("schemaVersion").number(1).key("entries").begin_array();
    for (const CatalogEntry& entry : entries) {
      json.begin_object();
      write_entry(json, entry);
      json.end_object();
    }
    json.end_array().end_object();
    output.out += std::move(json).take() + "\n";
    return Exit::ok;
  }
  std::size_t width = 0;
  for (const CatalogEntry& entry : entries) width = std::max(width, entry.name.size());
  for (const CatalogEntry& entry : entries) {
    output.out += format("{:<{}}  {}\n", entry.name, width, join(package_names(entry), "  "));
  }
  return Exit::ok;
}

// By the entry's name, or by a package's with or without its registry.
const CatalogEntry* find(const std::string& word) {
  if (const CatalogEntry* entry = clients::find_entry(word)) return entry;
  for (const std::string_view prefix : {"", "npm:", "pypi:"}) {
    const auto package = clients::parse_package(format("{}{}", prefix, word));
    if (!package) continue;
    if (const CatalogEntry* entry = clients::find_entry(*package, "")) return entry;
  }
  return nullptr;
}

int unknown_entry(std::string_view word, Output& output) {
  std::vector<std::string_view> names;
  for (const CatalogEntry& entry : clients::catalog()) names.emplace_back(entry.name);
  const auto best = closest(word, names);
  return usage_error(format("the catalog has no entry {}", quoted(word)),
                     best ? format("did you mean {}?", *best) : "see capgate catalog list", output);
}

std::string describe_variable(const CatalogEntry& entry, const std::string& variable) {
  std::string from = where_bound(entry, variable);
  const std::string_view usual = default_of(entry, variable);
  if (!usual.empty()) {
    from += from.empty() ? format("{}", usual) : format("; else {}", usual);
  }
  const bool optional = contains(entry.optional, variable);
  return format("  {}  {}{}\n", variable, from, optional ? "; may be absent" : "");
}

std::string describe_entry(const CatalogEntry& entry) {
  std::string out = format("{}\n\npackages:\n", entry.name);
  for (const std::string& name : package_names(entry)) out += format("  {}\n", name);
  if (!entry.variables.empty()) out += "\nvariables:\n";
  for (const std::string& variable : entry.variables) out += describe_variable(entry, variable);
  std::vector<std::string> absent;
  std::ranges::copy_if(entry.optional, std::back_inserter(absent),
                       [&](const std::string& name) { return !contains(entry.variables, name); });
  if (!absent.empty()) out += format("\nmay be unset:\n  {}\n", join(absent, " "));
  if (!entry.notes.empty()) out += "\nnotes:\n";
  for (const std::string& note : entry.notes) out += format("  {}\n", note);
  return out + format("\nmanifest:\n{}\n", entry.manifest);
}

int show(const Arguments& arguments, Output& output) {
  const std::string& word = arguments.operands[1];
  const CatalogEntry* entry = find(word);
  if (entry == nullptr) return unknown_entry(word, output);
  if (!arguments.has("--json")) {
    output.out += describe_entry(*entry);
    return Exit::ok;
  }
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1);
  write_entry(json, *entry);
  json.key("manifest").verbatim(entry->manifest).end_object();
  output.out += std::move(json).take() + "\n";
  return Exit::ok;
}

int bind(const Arguments& arguments, Output& output) {
  const std::string& word = arguments.operands[1];
  const CatalogEntry* entry = find(word);
  if (entry == nullptr) return unknown_entry(word, output);
  return bind_entry(*entry, {arguments.operands.begin() + 2, arguments.operands.end()},
                    arguments.has("--json"), output);
}

std::expected<std::vector<CatalogCheck>, int> wanted_checks(const Arguments& arguments,
                                                            Output& output) {
  std::vector<CatalogCheck> all = check_catalog();
  if (arguments.operands.size() == 1) return all;
  std::vector<CatalogCheck> wanted;
  for (const std::string& name : std::span(arguments.operands).subspan(1)) {
    const auto check = std::ranges::find(all, name, &CatalogCheck::name);
    if (check == all.end()) return std::unexpected(unknown_entry(name, output));
    wanted.push_back(*check);
  }
  return wanted;
}

int test(const Arguments& arguments, Output& output) {
  const auto checks = wanted_checks(arguments, output);
  if (!checks) return checks.error();
  const bool passed = std::ranges::all_of(
      *checks, [](const CatalogCheck& check) { return check.problems.empty(); });
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("schemaVersion").number(1).key("passed").boolean(passed);
    json.key("entries").begin_array();
    for (const CatalogCheck& check : *checks) {
      json.begin_object().key("name").string(check.name).key("tools").number(check.tools);
      write_texts(json, "problems", check.problems);
      json.end_object();
    }
    json.end_array().end_object();
    output.out += std::move(json).take() + "\n";
    return passed ? Exit::ok : Exit::compile_error;
  }
  for (const CatalogCheck& check : *checks) {
    output.out += format("{}: {}\n", check.name, check.problems.empty() ? "ok" : "failed");
    for (const std::string& problem : check.problems) output.out += format("  {}\n", problem);
  }
  return passed ? Exit::ok : Exit::compile_error;
}

int run(const Arguments& arguments, Output& output) {
  const std::string& verb = arguments.operands.front();
  const std::size_t words = arguments.operands.size();
  if (verb == "list" && words > 1) {
    return usage_error("catalog list takes no names", "see capgate catalog show NAME", output);
  }
  if (verb == "show" && words != 2) {
    return usage_error("catalog show takes one NAME or PACKAGE",
                       "write capgate catalog show filesystem", output);
  }
  if (verb == "bind" && words < 2) {
    return usage_error("catalog bind takes a NAME or PACKAGE and the server's own arguments",
                       "write capgate catalog bind filesystem -- /srv/notes", output);
  }
  if (verb == "bind" && arguments.dashes && *arguments.dashes != 2) {
    return usage_error("catalog bind takes one NAME or PACKAGE before --",
                       "write capgate catalog bind filesystem -- /srv/notes", output);
  }
  if (verb == "list") return list(arguments, output);
  if (verb == "bind") return bind(arguments, output);
  return verb == "show" ? show(arguments, output) : test(arguments, output);
}

}  // namespace

Command catalog_command() {
  return {.name = "catalog",
          .operands = "list|show|bind|test [NAME|PACKAGE]",
          .summary = "List, show and check the manifests that come with capgate.",
          .least_operands = 1,
          .most_operands = 1000,
          .options = options,
          .details =
              "list   every entry with the packages that it is for\n"
              "show   one: its packages, what binds its variables, its manifest\n"
              "bind   what the arguments after -- and this environment make of an entry: its\n"
              "       variables, and with --json the manifest that is left\n"
              "test   check entries: each compiles, and each of its variables can be bound\n"
              "\n"
              "An entry holds only for its packages, in its range of versions.\n"
              "Exit: 0 ok, 2 usage, 4 an entry failed its test.",
          .examples =
              "  capgate catalog list\n"
              "  capgate catalog show npm:@modelcontextprotocol/server-filesystem\n"
              "  capgate catalog show github --json | jq .manifest > github.json\n"
              "  capgate catalog bind git -- --repository /srv/repo\n"
              "  capgate catalog test",
          .run = run,
          .verbs = verbs};
}

}  // namespace capgate::cli
