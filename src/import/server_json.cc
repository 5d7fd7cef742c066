#include "import/server_json.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "import/own_meta.h"
#include "import/reading.h"
#include "import/toolhive.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Member;
using text::Value;

// The keys are spelled the same since the first of these; 2025-07-09 had others.
constexpr std::array<std::string_view, 5> known_schemas = {"2025-12-11", "2025-10-17", "2025-10-11",
                                                           "2025-09-29", "2025-09-16"};
constexpr std::string_view schema_ending = "/server.schema.json";
constexpr std::array<std::string_view, 11> root_keys = {
    "$schema",    "_meta",   "description", "icons",   "name",      "packages",
    "repository", "remotes", "title",       "version", "websiteUrl"};
constexpr std::array<std::string_view, 10> package_keys = {"environmentVariables",
                                                           "fileSha256",
                                                           "identifier",
                                                           "packageArguments",
                                                           "registryBaseUrl",
                                                           "registryType",
                                                           "runtimeArguments",
                                                           "runtimeHint",
                                                           "transport",
                                                           "version"};
constexpr std::string_view publisher_key = "io.modelcontextprotocol.registry/publisher-provided";
constexpr std::string_view toolhive_key = "io.github.stacklok";

struct Registry {
  std::string_view type;
  std::string_view runtime;                   // where runtimeHint says nothing
  std::string_view joint;                     // between a package and its version
  std::vector<std::string> (*before)() = {};  // words that come with that runtime
};
constexpr std::array registries = {
    Registry{"npm", "npx", "@", [] { return std::vector<std::string>{"-y"}; }},
    Registry{"pypi", "uvx", "@"},
    Registry{"nuget", "dnx", "@"},
    Registry{"oci", "docker", "", [] { return std::vector<std::string>{"run", "-i", "--rm"}; }},
    Registry{"mcpb", "", ""},
};

// "2025-12-11" of .../schemas/2025-12-11/server.schema.json
std::string_view schema_date(std::string_view schema) {
  if (!schema.ends_with(schema_ending)) return "";
  schema.remove_suffix(schema_ending.size());
  return schema.substr(schema.find_last_of('/') + 1);
}

// What the registry itself answers with has the entry one level down.
Value entry_of(Value root) {
  if (!root.is(Kind::object) || root.find("name")) return root;
  const auto server = root.find("server");
  return server && server->is(Kind::object) ? *server : root;
}

class Reader {
 public:
  Reader(const text::Document& document, const ImportPlace& place)
      : root_(entry_of(document.root())), whole_(document.root()), out_("server-json", place) {
    out_.reserve("WORKING_DIRECTORY");  // of relative paths in ToolHive's permissions
  }

  Checked<Imported> read() && {
    if (!root_.is(Kind::object)) {
      in_.complain(root_.span(), "server.json is an object", "see the registry's schema");
    } else if (read_schema()) {
      read_all();
    }
    return std::move(in_).finish(std::move(out_));
  }

 private:
  void read_all() {
    const std::string name = in_.text(root_, "name", Need::required);
    if (!name.empty() && std::ranges::count(name, '/') != 1) {
      in_.complain(root_.find("name")->span(),
                   format("{} is no name of the registry", quoted(name)),
                   "write it as in io.github.somebody/server");
    }
    out_.name(name);
    out_.version(in_.text(root_, "version", Need::required));
    Reading::drop_unknown(root_, root_keys, "", out_);
    const auto package = find_package();
    if (!package) return;
    read_command(*package);
    if (take_meta(*package)) return out_.command(std::move(command_));
    read_environment(*package);
    for (const char* key : {"runtimeArguments", "packageArguments"}) grant_arguments(*package, key);
    read_transport(*package);
    say_what_is_unsaid(*package);
    out_.command(std::move(command_));
  }

  bool read_schema() {
    const auto schema = root_.find("$schema");
    if (!schema) {
      out_.assumed("$schema",
                   format("the entry does not say its schema: read as {}", known_schemas.front()));
      return true;
    }
    const std::string_view date = schema->is(Kind::string) ? schema_date(schema->text()) : "";
    if (contains(known_schemas, date)) return true;
    in_.complain(Code::import_version, schema->span(),
                 date.empty() ? std::string("this is no schema of the registry")
                              : format("the schema {} is not known", quoted(date)),
                 format("known are {} to {}; another one needs another capgate",
                        known_schemas.back(), known_schemas.front()));
    return false;
  }

  // ---- the package ----------------------------------------------------------------------------

  std::optional<Value> find_package() {
    const auto packages = in_.list(root_, "packages");
    const auto remotes = in_.list(root_, "remotes");
    if (!packages || packages->count() == 0) {
      in_.complain(root_.span(),
                   remotes ? "this server is remote: there is nothing here to put into a sandbox"
                           : "the entry has no packages",
                   "a manifest is for a server that runs on this machine: take an entry with "
                   "packages");
      return std::nullopt;
    }
    if (remotes && remotes->count() > 0) {
      out_.dropped("remotes",
                   "the manifest is for the package; what is remote is not in a sandbox");
    }
    std::vector<Value> fitting;
    std::string names;
    for (const Value package : packages->elements()) {
      if (!package.is(Kind::object)) {
        in_.complain(package.span(), "a package is an object", "see the registry's schema");
        return std::nullopt;
      }
      const std::string type = in_.text(package, "registryType", Need::required);
      const std::string identifier = in_.text(package, "identifier", Need::required);
      names += format("{}{} ({})", names.empty() ? "" : ", ", escape_for_terminal(identifier),
                      escape_for_terminal(type));
      const std::string& wanted = out_.place().server;
      out_.chosen();
      if (wanted.empty() || wanted == type || wanted == identifier) fitting.push_back(package);
    }
    if (fitting.size() == 1) return fitting.front();
    in_.complain(packages->span(),
                 fitting.empty() ? format("no package is {}", quoted(out_.place().server))
                                 : std::string("the entry has several packages"),
                 format("say which one with --server TYPE or --server IDENTIFIER: {}", names));
    return std::nullopt;
  }

  void read_command(Value package) {
    Reading::drop_unknown(package, package_keys, "packages[]", out_);
    const std::string type = in_.text(package, "registryType", Need::required);
    const auto* registry = std::ranges::find(registries, type, &Registry::type);
    if (registry == registries.end()) {
      if (type.empty()) return;
      return in_.complain(package.find("registryType")->span(),
                          format("a package of type {} is not known", quoted(type)),
                          "npm, pypi, nuget, oci and mcpb are");
    }
    const std::string identifier = in_.text(package, "identifier", Need::required);
    const std::string version = in_.text(package, "version", Need::optional);
    std::string runtime = in_.text(package, "runtimeHint", Need::optional);
    if (type == "mcpb") {
      return out_.unsaid("packages[]",
                         "the package is a bundle, which says how it is started: "
                         "import the bundle itself");
    }
    if (runtime.empty()) runtime = registry->runtime;
    command_.push_back(runtime);
    if (runtime == registry->runtime && registry->before != nullptr) {
      std::ranges::move(registry->before(), std::back_inserter(command_));
    }
    add_words(package, "runtimeArguments");
    command_.push_back(version.empty() || registry->joint.empty()
                           ? identifier
                           : format("{}{}{}", identifier, registry->joint, version));
    add_words(package, "packageArguments");
  }

  void add_words(Value package, std::string_view key) {
    const auto arguments = in_.list(package, key);
    if (!arguments) return;
    for (const Value argument : arguments->elements()) {
      if (!argument.is(Kind::object)) {
        in_.complain(argument.span(), "an argument is an object", "see the registry's schema");
        continue;
      }
      const std::string type = in_.text(argument, "type", Need::required);
      if (type != "named" && type != "positional") {
        in_.complain(argument.span(), "an argument is named or positional",
                     "write \"type\": \"positional\"");
        continue;
      }
      const std::string name =
          in_.text(argument, "name", type == "named" ? Need::required : Need::optional);
      const std::string value = value_of(argument);
      if (type == "named") command_.push_back(name);
      if (!value.empty()) command_.push_back(value);
    }
  }

  // What stands in the command: the value with its {variables}, or a ${NAME} for what the user
  // gives.
  std::string value_of(Value input) {
    const std::string value = in_.text(input, "value", Need::optional);
    if (!value.empty()) return replaced(input, value);
    std::string fixed = in_.text(input, "default", Need::optional);
    if (!fixed.empty() && format_of(input) != "filepath") return fixed;
    const std::string key = key_of(input);
    if (key.empty() || format_of(input) == "boolean") return {};
    return format("${{{}}}", out_.variable(key));
  }

  std::string format_of(Value input) { return in_.text(input, "format", Need::optional); }

  std::string key_of(Value input) {
    std::string key = in_.text(input, "valueHint", Need::optional);
    if (key.empty()) key = in_.text(input, "name", Need::optional);
    return std::string(
        std::string_view(key).substr(std::min(key.find_first_not_of('-'), key.size())));
  }

  std::string replaced(Value input, std::string_view text) {
    const auto variables = in_.object(input, "variables");
    std::string out;
    while (true) {
      const std::size_t at = text.find('{');
      const std::size_t end = at == std::string_view::npos ? at : text.find('}', at);
      if (end == std::string_view::npos) return out + std::string(text);
      const std::string_view name = text.substr(at + 1, end - at - 1);
      const bool is_variable = variables && variables->find(name);
      out += text.substr(0, at);
      out += is_variable ? format("${{{}}}", out_.variable(name))
                         : std::string(text.substr(at, end + 1 - at));
      text.remove_prefix(end + 1);
    }
  }

  // ---- permissions ----------------------------------------------------------------------------

  // `_meta` of the entry, what the publisher provides in it, and `_meta` beside the entry.
  bool take_meta(Value package) {
    for (const Value holder : {root_, whole_}) {
      const auto meta = in_.object(holder, "_meta");
      if (!meta) continue;
      if (take_own_meta(*meta, in_, out_) == OwnMeta::taken) return true;
      const auto provided = in_.object(*meta, publisher_key);
      if (!provided) continue;
      if (take_own_meta(*provided, in_, out_) == OwnMeta::taken) return true;
      if (const auto known = in_.object(*provided, toolhive_key)) take_toolhive(*known, package);
    }
    return false;
  }

  // {IMAGE: {"permissions": a profile of ToolHive, ...}} beside what the package itself says.
  void take_toolhive(Value images, Value package) {
    const std::string subject = format("_meta.{}.{}", publisher_key, toolhive_key);
    const auto image = images.find(in_.text(package, "identifier", Need::required));
    const auto profile =
        image && image->is(Kind::object) ? in_.object(*image, "permissions") : std::nullopt;
    if (!profile) {
      return out_.dropped(subject, "it has no permissions for this package");
    }
    if (std::exchange(knows_hosts_, true)) return;  // `_meta` of the entry is the document's
    auto read = read_toolhive_profile(*profile, out_.place());
    if (!read) return in_.add(std::move(read).error());
    for (const std::string& capability : read->capabilities) out_.grant(capability, subject);
    for (const Loss& loss : read->losses) {
      const std::string place = format("{}.permissions.{}", toolhive_key, loss.subject);
      if (loss.kind == Loss::Kind::dropped) out_.dropped(place, loss.message);
      if (loss.kind == Loss::Kind::assumed && loss.subject != "name" && loss.subject != "version") {
        out_.assumed(place, loss.message);
      }
    }
    out_.assumed(subject,
                 "hosts and mounts are those of the permissions that ToolHive has for the image: "
                 "read them, as nobody else has checked them");
  }

  bool is_secret(Value input) {
    if (in_.flag(input, "isSecret")) return true;
    const auto variables = in_.object(input, "variables");
    if (!variables) return false;
    for (const Member member : variables->members()) {
      if (member.value.is(Kind::object) && in_.flag(member.value, "isSecret")) return true;
    }
    return false;
  }

  void read_environment(Value package) {
    const auto list = in_.list(package, "environmentVariables");
    if (!list) return;
    for (const Value input : list->elements()) {
      if (!input.is(Kind::object)) {
        in_.complain(input.span(), "a variable is an object", "write {\"name\": ...}");
        continue;
      }
      const std::string name = in_.text(input, "name", Need::required);
      if (!name.empty()) grant_variable(input, name);
    }
  }

  void grant_variable(Value input, const std::string& name) {
    const std::string subject = format("environmentVariables.{}", escape_for_terminal(name));
    using Action = core::EnvCapability::Action;
    const bool secret = is_secret(input);
    // What the user gives is in the variables of a value.
    const std::string value = in_.text(input, "value", Need::optional);
    const bool has_value = input.find("value").has_value();
    const bool is_fixed = has_value && replaced(input, value) == value;
    if (is_fixed && !out_.keep_fixed_env(name, subject)) return;
    if (!out_.grant_env(secret ? Action::inject : Action::read, name, subject)) return;
    if (is_fixed) {
      out_.tell_fixed_env(name, subject);
    } else if (secret) {
      out_.assumed(subject, format("the format does not say where the secret may go: the server "
                                   "gets the value itself; write env:inject:{}?to=HOST:443 to keep "
                                   "it from the server",
                                   name));
    } else if (has_value) {
      out_.assumed(subject,
                   "the entry makes its value of what the user gives: set the same where capgate "
                   "is started");
    }
    grant_paths_of(input, name, subject);
  }

  void grant_arguments(Value package, std::string_view key) {
    const auto arguments = in_.list(package, key);
    if (!arguments || !in_.is_good()) return;
    for (const Value argument : arguments->elements()) {
      const std::string name = key_of(argument);
      const std::string subject =
          name.empty() ? std::string(key) : format("{}.{}", key, escape_for_terminal(name));
      if (is_secret(argument)) {
        out_.dropped(subject,
                     "the secret stands in the command line, where every process can read "
                     "it, and no capability gives it: let the server take it from a "
                     "variable (env:inject:NAME)");
      }
      grant_paths_of(argument, name, subject);
    }
    if (key == "runtimeArguments" && arguments->count() > 0) {
      out_.dropped("runtimeArguments",
                   "what they grant (mounts, networks) is for another runtime "
                   "and is not read: add the capabilities that they stand for");
    }
  }

  // Of an input, and of the variables in its value.
  void grant_paths_of(Value input, std::string_view key, std::string_view subject) {
    if (format_of(input) == "filepath" && !key.empty() && !input.find("value")) {
      grant_path(key, subject);
    }
    const auto variables = in_.object(input, "variables");
    if (!variables) return;
    for (const Member member : variables->members()) {
      if (member.value.is(Kind::object) && format_of(member.value) == "filepath") {
        grant_path(member.key.text(), subject);
      }
    }
  }

  void grant_path(std::string_view key, std::string_view subject) {
    const std::string name = out_.variable(key);
    if (!out_.grant(format("fs:read:${{{}}}", name), subject)) return;
    out_.assumed(subject,
                 format("the format does not say whether the server writes there: reading is all "
                        "it gets; write fs:read,write:${{{}}} if tools change something. Bind it "
                        "with --set {}=PATH",
                        name, name));
  }

  // http://127.0.0.1:PORT/mcp: the server listens itself.
  void read_transport(Value package) {
    const auto transport = in_.object(package, "transport", Need::required);
    if (!transport) return;
    const std::string type = in_.text(*transport, "type", Need::required);
    if (type == "stdio" || type.empty()) return;
    const std::string url = in_.text(*transport, "url", Need::required);
    std::string_view rest = url;
    for (const std::string_view scheme : {"http://", "https://"}) {
      if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
    }
    rest = rest.substr(0, rest.find('/'));
    const std::size_t colon = rest.rfind(':');
    const std::string_view port = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
    if (const auto number = parse_decimal(port); number && *number > 0 && *number <= UINT16_MAX) {
      out_.grant(format("net:listen:{}", *number), "transport.url");
    } else {
      out_.unsaid("transport.url",
                  "the server listens on a port that is not said: add net:listen:PORT");
    }
  }

  void say_what_is_unsaid(Value package) {
    if (!knows_hosts_) {
      out_.unsaid("net",
                  "the format cannot say which hosts the server needs, so it reaches none: add "
                  "net:connect:HOST:PORT");
    }
    out_.unsaid("exec",
                "the format cannot say which programs the server starts, so it starts none: "
                "add exec:spawn:NAME");
    out_.unsaid("tools", "the format does not list tools: capgate init lists them");
    const auto type = package.find("registryType");
    if (type && (type->text() == "npm" || type->text() == "pypi" || type->text() == "nuget")) {
      out_.unsaid("packages[]",
                  "it is started by a program that gets the package from its registry "
                  "first, and there is no network: install it before, with capgate "
                  "install");
    } else if (type && type->text() == "oci") {
      out_.unsaid("packages[]",
                  "it is an image, which a container engine starts: capgate compile "
                  "--target docker makes the arguments for it");
    }
    if (package.find("fileSha256")) {
      out_.dropped("fileSha256",
                   "a manifest has no digest of the package: check it before it is "
                   "unpacked");
    }
  }

  Value root_;
  Value whole_;
  Reading in_;
  Collector out_;
  std::vector<std::string> command_;
  bool knows_hosts_ = false;  // ToolHive's permissions name them
};

}  // namespace

bool is_server_json(const text::Document& document) {
  const Value root = entry_of(document.root());
  if (!root.is(Kind::object)) return false;
  const auto schema = root.find("$schema");
  if (schema && schema->is(Kind::string)) return schema->text().ends_with(schema_ending);
  const auto name = root.find("name");
  return name && name->is(Kind::string) && name->text().contains('/') &&
         (root.find("packages") || root.find("remotes"));
}

Checked<Imported> read_server_json(const text::Document& document, const ImportPlace& place) {
  return Reader(document, place).read();
}

}  // namespace capgate::imports
