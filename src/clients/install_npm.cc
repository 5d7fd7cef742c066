// npm in its sandbox.
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <string>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "clients/installer.h"
#include "clients/names.h"
#include "clients/tree.h"
#include "text/json.h"

namespace capgate::clients {
namespace {

using text::Kind;
using text::Value;

constexpr std::size_t largest_description = std::size_t{16} << 20U;
constexpr std::string_view node_help = "install Node.js with npm, or name its directory in PATH";

std::string real_file(const std::string& path) {
  char out[PATH_MAX];
  return ::realpath(path.c_str(), out) == nullptr ? "" : out;
}

std::string_view above(std::string_view path) { return path.substr(0, path.rfind('/')); }

// npm as a file that node runs. What PATH names may be a wrapper of a version manager, which cannot
// run inside: then npm is where Node's own installation has it.
struct Npm {
  std::string program;  // as PATH has it, for questions
  std::string node;
  std::string script;
};

Stored<Npm> find_npm(const Work& work) {
  Npm out{.program = TRY(find_tool(work, "npm", node_help)), .node = "", .script = ""};
  const std::string found = TRY(find_tool(work, "node", node_help));
  auto path = ask_tool(work, {found, "--print", "process.execPath"});
  if (!path) return std::unexpected(std::move(path).error());
  out.node = trim(*path);
  if (!out.node.starts_with('/'))
    return refuse("node does not say where it is", std::string(node_help));
  out.script = real_file(out.program);
  if (!out.script.ends_with(".js")) {
    out.script =
        real_file(format("{}/lib/node_modules/npm/bin/npm-cli.js", above(above(out.node))));
  }
  if (out.script.empty()) return refuse("npm's own program was not found", std::string(node_help));
  return out;
}

std::string text_of(Value object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->is(Kind::string) ? std::string(value->text()) : std::string();
}

// A package of another scope than these comes from the general registry. A scope with a registry of
// its own keeps it for dependencies too: who publishes the same name elsewhere must not be asked.
struct Scope {
  std::string name;  // "@acme"
  RegistryAddress registry;
};

struct Settings {
  RegistryAddress general;
  std::vector<Scope> scopes;
  std::string certificates;
};

std::string scope_of(std::string_view package) {
  return package.starts_with('@') ? std::string(package.substr(0, package.find('/'))) : "";
}

// What npm itself would use. It leaves out what is secret.
Stored<Settings> read_settings(const Work& work, const Npm& npm) {
  const std::string text =
      TRY(ask_tool(work, {npm.program, "--logs-max=0", "config", "list", "--json"}));
  const auto document = text::parse_json(text);
  if (!document || !document->root().is(Kind::object)) {
    return refuse("npm config list --json does not say what npm uses", "try a newer npm");
  }
  const Value settings = document->root();
  const std::string registry = text_of(settings, "registry");
  if (registry.empty()) return refuse("npm names no registry", "npm config set registry URL");
  Settings out{.general = TRY(parse_registry(registry)),
               .scopes = {},
               .certificates = text_of(settings, "cafile")};
  constexpr std::string_view ending = ":registry";
  for (const auto member : settings.members()) {
    const std::string_view key = member.key.text();
    if (!key.starts_with('@') || !key.ends_with(ending) || !member.value.is(Kind::string)) continue;
    out.scopes.push_back({.name = std::string(key.substr(0, key.size() - ending.size())),
                          .registry = TRY(parse_registry(member.value.text()))});
  }
  return out;
}

// --registry: everything comes from there.
Stored<Settings> chosen_settings(const Work& work) {
  return Settings{
      .general = TRY(parse_registry(work.options.registry)), .scopes = {}, .certificates = ""};
}

const RegistryAddress& registry_of(const Settings& settings, std::string_view package) {
  const auto scope = std::ranges::find(settings.scopes, scope_of(package), &Scope::name);
  return scope == settings.scopes.end() ? settings.general : scope->registry;
}

// "registry.example.com:443 and npm.acme.example:443", for a message.
std::string reachable(const Settings& settings) {
  std::vector<std::string> places{format("{}:{}", settings.general.host, settings.general.port)};
  for (const Scope& scope : settings.scopes) {
    places.push_back(format("{}:{}", scope.registry.host, scope.registry.port));
  }
  sort_and_deduplicate(places);
  return join(places, " and ");
}

std::vector<std::string> install_words(const Work& work, const Npm& npm, const Settings& settings,
                                       const std::string& certificates) {
  std::vector<std::string> words{
      npm.node, npm.script, "install", "--prefix", work.tree(), "--cache", work.staging + "/cache",
      // None of the user's settings, and none of the machine's: no token is known inside.
      "--userconfig", work.staging + "/userconfig", "--globalconfig",
      work.staging + "/globalconfig", "--registry", settings.general.url, "--lockfile-version=3",
      "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--logs-max=0",
      "--loglevel=error", "--color=false", "--fetch-retry-mintimeout=500",
      "--fetch-retry-maxtimeout=2000"};
  bool encrypted = settings.general.encrypted;
  for (const Scope& scope : settings.scopes) {
    words.push_back(format("--{}:registry={}", scope.name, scope.registry.url));
    encrypted |= scope.registry.encrypted;
  }
  if (encrypted && !certificates.empty()) {
    words.insert(words.end(), {"--cafile", certificates});
  }
  if (!work.options.scripts) words.emplace_back("--ignore-scripts");
  words.emplace_back("--");
  words.push_back(format("{}@{}", work.package.name,
                         work.package.range.empty() ? "latest" : work.package.range));
  return words;
}

std::vector<std::string> capabilities_for(const Work& work, const Npm& npm,
                                          const Settings& settings) {
  std::vector<std::string> out{capability_for(settings.general)};
  for (const Scope& scope : settings.scopes) out.push_back(capability_for(scope.registry));
  sort_and_deduplicate(out);
  const std::string package(above(above(npm.script)));
  if (!package.starts_with("/usr/")) out.push_back(fs_capability("read", package));
  // Scripts run in a shell, and are mostly Node's.
  if (work.options.scripts) out.insert(out.end(), {"exec:spawn:sh", "exec:spawn:node"});
  return out;
}

bool is_true(Value object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->is(Kind::boolean) && value->text() == "true";
}

// Every package has a hash that npm compared, or came inside of one that has.
Stored<void> check_hashes(Value packages) {
  for (const auto member : packages.members()) {
    if (member.key.text().empty() || !member.value.is(Kind::object)) continue;
    const bool covered = is_true(member.value, "inBundle") || is_true(member.value, "optional") ||
                         text_of(member.value, "integrity").starts_with("sha");
    if (!covered || is_true(member.value, "link")) {
      return refuse(format("{} has no hash in the registry", quoted(member.key.text())),
                    "capgate installs only what the registry vouches for");
    }
  }
  return {};
}

Stored<Fetched> read_result(const Work& work, const Npm& npm) {
  const auto unclear = [] {
    return refuse("npm wrote no package-lock.json that can be read", "try a newer npm");
  };
  auto text = read_inside(work.tree(), "package-lock.json", largest_description);
  if (!text) return unclear();
  const auto document = text::parse_json(*std::move(text));
  if (!document || !document->root().is(Kind::object)) return unclear();
  const auto packages = document->root().find("packages");
  if (!packages || !packages->is(Kind::object)) return unclear();
  if (auto done = check_hashes(*packages); !done) return std::unexpected(std::move(done).error());
  const auto own = packages->find(format("node_modules/{}", work.package.name));
  if (!own || !own->is(Kind::object)) return unclear();
  Fetched out{.version = text_of(*own, "version"),
              .integrity = text_of(*own, "integrity"),
              .runtime = npm.node};
  if (!is_version(out.version) || out.integrity.empty()) return unclear();
  return out;
}

}  // namespace

Stored<Fetched> fetch_npm(const Work& work) {
  const Npm npm = TRY(find_npm(work));
  const Settings settings =
      TRY(work.options.registry.empty() ? read_settings(work, npm) : chosen_settings(work));
  const RegistryAddress& registry = registry_of(settings, work.package.name);
  if (auto done = write_text(work.tree() + "/package.json",
                             "{\"name\": \"capgate-package\", \"private\": true}\n");
      !done) {
    return std::unexpected(std::move(done).error());
  }
  const std::string certificates =
      write_certificates(work, {settings.certificates, variable_of(work, "NODE_EXTRA_CA_CERTS")});
  const ToolEnd ended = TRY(run_confined(
      work, {.capabilities = capabilities_for(work, npm, settings),
             .command = install_words(work, npm, settings, certificates),
             .step = format("npm fetches {} from {}", work.package.name, registry.host)}));
  if (ended.status != 0) {
    return refuse(
        format("npm could not install {}:\n  {}", print(work.package), last_words(ended.err)),
        format("only {} can be reached from there", reachable(settings)));
  }
  return read_result(work, npm);
}

}  // namespace capgate::clients
