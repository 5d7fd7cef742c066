// npm in its sandbox.
#include <climits>
#include <cstdlib>
#include <string>

#include "base/format.h"
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

struct Settings {
  std::string registry;
  std::string certificates;
};

// What npm itself would use: the registry of the package's scope, else the general one.
Stored<Settings> read_settings(const Work& work, const Npm& npm) {
  const std::string& name = work.package.name;
  const std::string scope =
      name.starts_with('@') ? format("{}:registry", name.substr(0, name.find('/'))) : "";
  std::vector<std::string> words{npm.program, "--logs-max=0", "config",
                                 "get",       "registry",     "cafile"};
  if (!scope.empty()) words.push_back(scope);
  const std::string text = TRY(ask_tool(work, std::move(words)));
  Settings out;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, equals);
    const std::string value(trim(line.substr(equals + 1)));
    if (value.empty() || value == "undefined" || value == "null") continue;
    if (key == "cafile") out.certificates = value;
    if (key == "registry" && out.registry.empty()) out.registry = value;
    if (!scope.empty() && key == scope) out.registry = value;
  }
  if (out.registry.empty()) return refuse("npm names no registry", "npm config set registry URL");
  return out;
}

std::vector<std::string> install_words(const Work& work, const Npm& npm,
                                       const RegistryAddress& registry,
                                       const std::string& certificates) {
  std::vector<std::string> words{
      npm.node, npm.script, "install", "--prefix", work.tree(), "--cache", work.staging + "/cache",
      // None of the user's settings, and none of the machine's: no token is known inside.
      "--userconfig", work.staging + "/userconfig", "--globalconfig",
      work.staging + "/globalconfig", "--registry", registry.url, "--lockfile-version=3",
      "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--logs-max=0",
      "--loglevel=error", "--color=false", "--fetch-retry-mintimeout=500",
      "--fetch-retry-maxtimeout=2000"};
  const std::string& name = work.package.name;
  if (name.starts_with('@')) {
    words.push_back(format("--{}:registry={}", name.substr(0, name.find('/')), registry.url));
  }
  if (registry.encrypted && !certificates.empty()) {
    words.insert(words.end(), {"--cafile", certificates});
  }
  if (!work.options.scripts) words.emplace_back("--ignore-scripts");
  words.emplace_back("--");
  words.push_back(
      format("{}@{}", name, work.package.range.empty() ? "latest" : work.package.range));
  return words;
}

std::vector<std::string> capabilities_for(const Work& work, const Npm& npm,
                                          const RegistryAddress& registry) {
  std::vector<std::string> out{capability_for(registry)};
  const std::string package(above(above(npm.script)));
  if (!package.starts_with("/usr/")) out.push_back(fs_capability("read", package));
  // Scripts run in a shell, and are mostly Node's.
  if (work.options.scripts) out.insert(out.end(), {"exec:spawn:sh", "exec:spawn:node"});
  return out;
}

std::string text_of(Value object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->is(Kind::string) ? std::string(value->text()) : std::string();
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
  Settings settings{.registry = work.options.registry, .certificates = ""};
  if (settings.registry.empty()) settings = TRY(read_settings(work, npm));
  const RegistryAddress registry = TRY(parse_registry(settings.registry));
  if (auto done = write_text(work.tree() + "/package.json",
                             "{\"name\": \"capgate-package\", \"private\": true}\n");
      !done) {
    return std::unexpected(std::move(done).error());
  }
  const std::string certificates =
      write_certificates(work, {settings.certificates, variable_of(work, "NODE_EXTRA_CA_CERTS")});
  const ToolEnd ended = TRY(run_confined(
      work, {.capabilities = capabilities_for(work, npm, registry),
             .command = install_words(work, npm, registry, certificates),
             .step = format("npm fetches {} from {}", work.package.name, registry.host)}));
  if (ended.status != 0) {
    return refuse(
        format("npm could not install {}:\n  {}", print(work.package), last_words(ended.err)),
        format("only {}:{} can be reached from there", registry.host, registry.port));
  }
  return read_result(work, npm);
}

}  // namespace capgate::clients
