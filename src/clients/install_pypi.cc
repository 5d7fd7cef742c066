// pip in its sandbox. Wheels are unpacked into a plain directory, not into a virtual environment:
// that one names its own place in its files and links to the interpreter, so it could not be moved
// into the store, and would hold links out of its tree.
#include "base/format.h"
#include "base/text.h"
#include "clients/entry_point.h"
#include "clients/installer.h"
#include "clients/names.h"
#include "clients/tree.h"
#include "core/host.h"
#include "text/json.h"

namespace capgate::clients {
namespace {

using text::Kind;
using text::Value;

constexpr std::size_t largest_report = std::size_t{16} << 20U;
constexpr std::string_view report_name = "pip-report.json";
constexpr std::string_view python_help = "install Python 3 with pip (Debian: python3-pip)";

struct Python {
  std::string program;  // that has pip
  std::string base;     // the same one outside of a virtual environment: what servers run with
};

Stored<Python> find_python(const Work& work) {
  const std::string found = TRY(find_tool(work, "python3", python_help));
  const std::string text = TRY(
      ask_tool(work, {found, "-I", "-c",
                      "import sys; print(sys.executable); print(getattr(sys, '_base_executable', "
                      "sys.executable))"}));
  const auto lines = split(text, '\n');
  if (lines.size() < 2 || !lines[0].starts_with('/') || !lines[1].starts_with('/')) {
    return refuse("python3 does not say where it is", std::string(python_help));
  }
  return Python{.program = std::string(lines[0]), .base = std::string(lines[1])};
}

// The index that pip asks where nothing is configured, and the host that its files lie on. Only pip
// knows, and it has no command that says so.
struct DefaultIndex {
  std::string url;
  std::string files;
};

DefaultIndex ask_default_index(const Work& work, const Python& python) {
  const auto text =
      ask_tool(work, {python.program, "-I", "-c",
                      "from pip._internal.models.index import PyPI; print(PyPI.simple_url); "
                      "print(PyPI.file_storage_domain)"});
  if (!text) return {};
  const auto lines = split(*text, '\n');
  if (lines.size() < 2) return {};
  return {.url = std::string(trim(lines[0])), .files = std::string(trim(lines[1]))};
}

std::string configured_index(const Work& work, const Python& python) {
  if (!work.options.registry.empty()) return work.options.registry;
  if (std::string set = variable_of(work, "PIP_INDEX_URL"); !set.empty()) return set;
  // Isolated: asked in HOME, Python would import what lies there under a name of its own.
  const auto asked =
      ask_tool(work, {python.program, "-I", "-m", "pip", "config", "get", "global.index-url"});
  return std::string(asked ? trim(*asked) : std::string_view());
}

std::vector<std::string> install_words(const Work& work, const Python& python,
                                       const RegistryAddress& index,
                                       const std::string& certificates) {
  std::vector<std::string> words{python.program,
                                 "-I",
                                 "-m",
                                 "pip",
                                 "--isolated",
                                 "--disable-pip-version-check",
                                 "--no-input",
                                 "--no-color",
                                 "--no-cache-dir",
                                 "install",
                                 "--quiet",
                                 "--no-compile",
                                 "--progress-bar=off",
                                 "--target",
                                 work.tree() + "/lib",
                                 "--index-url",
                                 index.url,
                                 "--report",
                                 format("{}/{}", work.tree(), report_name)};
  if (index.encrypted && !certificates.empty()) {
    words.insert(words.end(), {"--cert", certificates});
  }
  if (!index.encrypted) {
    words.insert(words.end(), {"--trusted-host", format("{}:{}", index.host, index.port)});
  }
  // Building from sources runs what the sources say.
  if (!work.options.scripts) words.insert(words.end(), {"--only-binary", ":all:"});
  words.emplace_back("--");
  words.push_back(work.package.name + work.package.range);
  return words;
}

std::vector<std::string> capabilities_for(const Work& work, const RegistryAddress& index,
                                          const DefaultIndex& usual) {
  std::vector<std::string> out{capability_for(index)};
  const auto usual_address = parse_registry(usual.url);
  if (usual_address && usual_address->host == index.host && core::parse_host(usual.files)) {
    out.push_back(format("net:connect:{}:443?private=true", usual.files));
  }
  if (work.options.scripts) out.insert(out.end(), {"exec:spawn:sh", "exec:spawn:python3"});
  return out;
}

std::string text_of(Value object, std::string_view key) {
  const auto value = object.is(Kind::object) ? object.find(key) : std::nullopt;
  return value && value->is(Kind::string) ? std::string(value->text()) : std::string();
}

std::optional<Value> walk(Value from, std::initializer_list<std::string_view> keys) {
  std::optional<Value> at = from;
  for (const std::string_view key : keys) {
    if (!at || !at->is(Kind::object)) return std::nullopt;
    at = at->find(key);
  }
  return at;
}

// "sha256:..." of the archive, which pip compared with what the index states.
std::string hash_of(Value item) {
  const auto info = walk(item, {"download_info", "archive_info"});
  if (!info) return "";
  if (const auto hashes = walk(*info, {"hashes"})) {
    const std::string found = text_of(*hashes, "sha256");
    if (!found.empty()) return "sha256:" + found;
  }
  const std::string old = text_of(*info, "hash");
  return old.starts_with("sha256=") ? "sha256:" + old.substr(7) : "";
}

Stored<Fetched> read_result(const Work& work, const Python& python) {
  const auto unclear = [] {
    return refuse("pip wrote no report that can be read", "pip must be 22.3 or newer");
  };
  auto text = read_inside(work.tree(), report_name, largest_report);
  if (!text) return unclear();
  const auto document = text::parse_json(*std::move(text));
  const auto items = document ? walk(document->root(), {"install"}) : std::nullopt;
  if (!items || !items->is(Kind::array)) return unclear();
  Fetched out{.version = "", .integrity = "", .runtime = python.base};
  for (const Value item : items->elements()) {
    const auto metadata = walk(item, {"metadata"});
    if (!metadata) return unclear();
    const std::string hash = hash_of(item);
    if (hash.empty()) {
      return refuse(format("{} has no hash in the index", quoted(text_of(*metadata, "name"))),
                    "capgate installs only what the index vouches for");
    }
    const auto requested = walk(item, {"requested"});
    if (!requested || requested->text() != "true") continue;
    out.version = text_of(*metadata, "version");
    out.integrity = hash;
  }
  if (!is_version(out.version)) return unclear();
  return out;
}

// Compiled once, here: the tree is read-only ever after. The files are checked by nothing when they
// are loaded, and name the place where the sandbox shows them. What cannot be compiled is left.
Stored<void> compile(const Work& work, const Python& python) {
  auto ended =
      run_confined(work, {.capabilities = {},
                          .command = {python.base, "-I", "-S", "-m", "compileall", "-q",
                                      "--invalidation-mode", "unchecked-hash", "-s", work.tree(),
                                      "-p", std::string(shown_at), work.tree() + "/lib"},
                          .step = "Python compiles it"});
  if (!ended) return std::unexpected(std::move(ended).error());
  return {};
}

}  // namespace

Stored<Fetched> fetch_pypi(const Work& work) {
  const Python python = TRY(find_python(work));
  const DefaultIndex usual = ask_default_index(work, python);
  const std::string configured = configured_index(work, python);
  const RegistryAddress index = TRY(parse_registry(configured.empty() ? usual.url : configured));
  if (auto done = write_text(work.tree() + "/launch.py", python_launcher()); !done) {
    return std::unexpected(std::move(done).error());
  }
  const std::string certificates = write_certificates(
      work, {variable_of(work, "PIP_CERT"), variable_of(work, "REQUESTS_CA_BUNDLE")});
  const ToolEnd ended = TRY(run_confined(
      work, {.capabilities = capabilities_for(work, index, usual),
             .command = install_words(work, python, index, certificates),
             .step = format("pip fetches {} from {}", work.package.name, index.host)}));
  if (ended.status != 0) {
    return refuse(
        format("pip could not install {}:\n  {}", print(work.package), last_words(ended.err)),
        format("only {}:{} can be reached from there; without --allow-scripts only "
               "wheels are installed",
               index.host, index.port));
  }
  if (auto done = compile(work, python); !done) return std::unexpected(std::move(done).error());
  return read_result(work, python);
}

}  // namespace capgate::clients
