#include "import/docker_catalog.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "import/rules.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::array<std::string_view, 5> catalog_keys = {"version", "name", "displayName",
                                                          "registry", "policy"};
// Those in the first rows say nothing about permissions.
constexpr std::array<std::string_view, 34> server_keys = {
    "name",      "type",      "image",       "description",    "title",      "icon",
    "readme",    "dateAdded", "ref",         "toolsUrl",       "source",     "upstream",
    "metadata",  "prompts",   "resources",   "about",          "meta",       "snapshot",
    "longLived", "remote",    "sseEndpoint", "oauth",          "secrets",    "env",
    "command",   "volumes",   "user",        "disableNetwork", "allowHosts", "extraHosts",
    "tools",     "config",    "prefix",      "policy"};
constexpr std::array<std::string_view, 7> tool_keys = {
    "name", "description", "arguments", "annotations", "container", "parameters", "policy"};

class Reader {
 public:
  Reader(Value root, const ImportPlace& place) : in_("docker-catalog", place), root_(root) {}

  Checked<Imported> read() {
    in_.start_is_unknown("the gateway");
    if (!root_.is(Kind::object)) {
      in_.complain(root_.span(), "a catalog is a mapping", "write registry: {NAME: {image: ...}}");
    } else if (root_.find("registry")) {
      read_catalog();
    } else {
      read_server(root_);
    }
    in_.out().unsaid("exec",
                     "an entry does not say which programs the server starts: none is "
                     "granted; add exec:spawn:NAME where one is needed");
    return std::move(in_).finish();
  }

 private:
  void read_catalog() {
    in_.check_keys(root_, catalog_keys, "a catalog");
    if (const auto version = root_.find("version")) {
      if (!version->is(Kind::number) || (version->text() != "2" && version->text() != "3")) {
        in_.add({.code = Code::import_version,
                 .where = version->span(),
                 .message = "this version of catalogs is not known",
                 .help = "known are the versions 2 and 3, and catalogs without one"});
        return;
      }
    }
    refuse_policy(root_);
    const auto registry = in_.member(root_, "registry", Kind::object);
    const auto chosen = registry ? in_.choose(*registry, "server") : std::nullopt;
    if (!chosen) return;
    if (!chosen->value.is(Kind::object)) {
      return in_.complain(chosen->value.span(), "an entry is a mapping", "write {image: ...}");
    }
    in_.out().name(chosen->key.text());
    read_server(chosen->value);
  }

  void refuse_policy(Value object) {
    const auto policy = object.find("policy");
    if (!policy || policy->is(Kind::null)) return;
    in_.refuse(policy->span(), "what a policy of the catalog forbids, a manifest would not",
               "remove it from a copy of the file if the manifest may do without");
  }

  void read_server(Value server) {
    in_.check_keys(server, server_keys, "an entry");
    refuse_policy(server);
    const std::string_view type = in_.text(server, "type");
    const auto remote = in_.member(server, "remote", Kind::object);
    if (type == "remote" || (remote && remote->find("url")) || server.find("sseEndpoint")) {
      return in_.refuse(server.find("type") ? server.find("type")->span() : server.span(),
                        "the server runs elsewhere, and no sandbox is around it",
                        "choose a server with an image");
    }
    if (type == "poci") {
      return in_.refuse(server.find("type")->span(), "each tool is a container of its own here",
                        "write a manifest for each of them, with its own volumes");
    }
    if (!type.empty() && type != "server") {
      return in_.complain(server.find("type")->span(), format("{} is no type", quoted(type)),
                          "write server");
    }
    if (const auto name = in_.text(server, "name"); !name.empty()) in_.out().name(name);
    for (const Value volume : in_.texts(server, "volumes")) read_volume(volume);
    read_network(server);
    read_env(server);
    read_secrets(server);
    read_rest(server);
    read_tools(server);
  }

  // `{{key}}` as ${KEY}; what is computed from a key ({{key|...}}) but is no list of paths,
  // nothing.
  std::optional<std::string> translate(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      const std::size_t open = text.find("{{");
      out += text.substr(0, open);
      if (open == std::string_view::npos) break;
      const std::size_t close = text.find("}}", open);
      if (close == std::string_view::npos) return {};
      std::string_view key = trim(text.substr(open + 2, close - open - 2));
      constexpr std::string_view filters[] = {"|volume|into", "|volume", "|into"};
      for (const std::string_view filter : filters) {
        if (key.ends_with(filter)) key = trim(key.substr(0, key.size() - filter.size()));
      }
      if (key.empty() || key.contains('|') || key.contains('{')) return {};
      out += format("${{{}}}", in_.out().variable(key));
      text = text.substr(close + 2);
    }
    return out;
  }

  // Known are those that say whether it is writable, and some that say nothing about that.
  bool check_options(Value volume, std::string_view options) {
    constexpr std::array<std::string_view, 10> known = {
        "ro", "rw", "z", "Z", "cached", "nocopy", "private", "rprivate", "consistent", "delegated"};
    for (const std::string_view option : split(options, ',')) {
      if (contains(known, option)) continue;
      in_.complain(whole(volume), format("{} is no option of a volume", quoted(option)),
                   "write ro for a volume that is only read, and rw or nothing for another one");
      return false;
    }
    return true;
  }

  // SOURCE:TARGET[:OPTIONS]; a source without a slash is a volume of the engine, and a path alone
  // is one of the container's: the engine makes an empty directory for it.
  void read_volume(Value value) {
    constexpr std::string_view subject = "volumes";
    if (value.text().contains("${")) return static_cast<void>(in_.plain(value, subject));
    const auto text = translate(value.text());
    if (!text) {
      in_.out().dropped(subject,
                        format("{} is computed by the gateway: grant the directory that is "
                               "meant",
                               quoted(value.text())));
      return;
    }
    auto parts = split(*text, ':');
    if (parts.size() > 3 || contains(parts, "")) {
      return in_.complain(whole(value), "a volume is SOURCE:TARGET or SOURCE:TARGET:ro",
                          "write HOST-PATH:CONTAINER-PATH");
    }
    // {{key|volume}} is PATH:PATH.
    if (parts.size() == 1 && !is_volume_template(value.text())) {
      in_.out().dropped(subject, format("{} has no target, so that it is a volume of the container "
                                        "and no directory of the host: grant a directory instead",
                                        quoted(value.text())));
      return;
    }
    if (parts.size() == 3 && !check_options(value, parts[2])) return;
    const Rules::Item item{
        .text = std::string(parts[0]), .where = whole(value), .subject = subject};
    const bool is_path = item.text.starts_with('/') || item.text.starts_with('~') ||
                         item.text.starts_with('.') || item.text.starts_with("${");
    if (!is_path) {
      in_.out().dropped(subject,
                        format("{} is a volume of the container engine, which has no path on "
                               "this host: grant a directory instead",
                               quoted(item.text)));
      return;
    }
    if (const auto controlled = core::control_socket(item.text)) {
      return in_.refuse(item.where, format("this socket controls {}", *controlled),
                        "whoever has it has every right: leave it out");
    }
    if (find_any(item.text, "*?[]") != std::string_view::npos) {
      return in_.complain(item.where, "a volume has no wildcards", "name the directory");
    }
    if (parts.size() > 1 && parts[1] != parts[0]) {
      in_.out().assumed(subject,
                        format("{} was {} in the container: the server sees the path of the "
                               "host, and its arguments must say so",
                               quoted(item.text), quoted(parts[1])));
    }
    in_.allow_path(
        parts.size() == 3 && contains(split(parts[2], ','), "ro") ? Access::read : Access::write,
        item);
  }

  static bool is_volume_template(std::string_view text) {
    return text.starts_with("{{") && text.find("{{", 2) == std::string_view::npos &&
           (text.ends_with("|volume}}") || text.ends_with("|volume|into}}"));
  }

  void read_network(Value server) {
    const auto hosts = in_.texts(server, "allowHosts");
    if (in_.flag(server, "disableNetwork")) {
      if (!hosts.empty()) {
        in_.out().assumed("disableNetwork",
                          "there is no network, whatever allowHosts says: no host is "
                          "granted");
      }
      return;
    }
    if (hosts.empty()) {
      in_.out().assumed("allowHosts",
                        "without allowHosts and disableNetwork everything may be reached "
                        "there; the manifest grants no host. Add net:connect:HOST:PORT");
    }
    for (const Value value : hosts) {
      if (value.text().contains("{{")) {
        read_host_template(value);
        continue;
      }
      const auto item = in_.plain(value, "allowHosts");
      if (!item) continue;
      const auto endpoint = in_.endpoint(*item);
      if (!endpoint) continue;
      if (endpoint->host.text == "localhost" || core::is_localhost_address(endpoint->host)) {
        in_.out().dropped(item->subject,
                          format("{} was the container itself: the host's own loopback "
                                 "is not meant, and not granted",
                                 quoted(item->text)));
        continue;
      }
      in_.allow_endpoint(*endpoint, *item);
    }
  }

  void read_host_template(Value value) {
    const auto text = value.text().contains("${") ? std::nullopt : translate(value.text());
    if (!text || !in_.out().grant(format("net:connect:{}", *text), "allowHosts")) {
      in_.out().dropped("allowHosts", format("{} is computed by the gateway: add the host that is "
                                             "meant, as net:connect:HOST:PORT",
                                             quoted(value.text())));
    }
  }

  // A list of {name, ...}: calls `use` with each.
  template <typename Use>
  void each_object(Value server, std::string_view key, Use use) {
    const auto list = in_.member(server, key, Kind::array);
    if (!list) return;
    for (const Value entry : list->elements()) {
      if (entry.is(Kind::object)) {
        use(entry);
      } else {
        in_.complain(entry.span(), format("{} is a list of mappings", key), "write [{name: ...}]");
      }
    }
  }

  void inject(Value entry, std::string_view key, std::string_view subject) {
    const auto name = in_.member(entry, key, Kind::string);
    if (!name || name->text().empty()) return;
    in_.allow_variable(
        core::EnvCapability::Action::inject,
        {.text = std::string(name->text()), .where = whole(*name), .subject = subject});
  }

  void read_env(Value server) {
    constexpr std::string_view keys[] = {"name", "value", "example", "description"};
    each_object(server, "env", [&](Value entry) {
      in_.check_keys(entry, keys, "a variable");
      const auto name = in_.member(entry, "name", Kind::string);
      if (!name || name->text().empty()) {
        return in_.complain(entry.span(), "a variable has a name", "add name: NAME");
      }
      const Rules::Item item{
          .text = std::string(name->text()), .where = whole(*name), .subject = "env"};
      const auto value = entry.find("value");
      const bool is_scalar = value && !value->is(Kind::object) && !value->is(Kind::array);
      // Without a value, or with one of its user's, the variable is the user's to set.
      const bool is_asked =
          !value || value->is(Kind::null) || (is_scalar && value->text().contains("{{"));
      if (!is_asked) return in_.allow_fixed_variable(item);
      in_.allow_variable(core::EnvCapability::Action::read, item);
      in_.out().dropped("env", format("a manifest holds no values: set {} where capgate runs",
                                      quoted(name->text())));
    });
  }

  void read_secrets(Value server) {
    constexpr std::string_view keys[] = {"name", "env", "example", "description", "required"};
    each_object(server, "secrets", [&](Value entry) {
      in_.check_keys(entry, keys, "a secret");
      inject(entry, "env", "secrets");
    });
    const auto oauth = in_.member(server, "oauth", Kind::object);
    if (!oauth) return;
    in_.out().dropped("oauth",
                      "the gateway fetches tokens there; here a secret comes from --secret");
    each_object(*oauth, "providers", [&](Value entry) { inject(entry, "env", "oauth"); });
  }

  void read_rest(Value server) {
    const auto drop = [&](std::string_view key, std::string_view message) {
      const auto value = server.find(key);
      if (value && !value->is(Kind::null)) in_.out().dropped(key, std::string(message));
    };
    drop("image", "a manifest does not say what is started: name the program to capgate run");
    drop("command", "its words are for the image: write the command out for capgate run");
    drop("extraHosts", "names are resolved outside of the sandbox: these have no effect");
    drop("user", "the server runs as whoever starts capgate, without more rights");
    drop("longLived", "how long the server lives is its client's matter");
    drop("prefix", "tools keep their names");
    drop("config", "what the gateway asks its user for is a variable of the manifest, if at all");
    for (const std::string_view key : {"resources", "prompts"}) {
      const auto value = server.find(key);
      if (value && value->is(Kind::object) && value->count() > 0) {
        in_.complain(value->span(), format("{} is not known in this form", key),
                     "remove it from a copy of the file if it restricts nothing");
      }
    }
  }

  void read_tools(Value server) {
    each_object(server, "tools", [&](Value tool) {
      in_.check_keys(tool, tool_keys, "a tool");
      refuse_policy(tool);
      if (const auto container = in_.member(tool, "container", Kind::object);
          container && container->count() > 0) {
        in_.refuse(container->span(), "the tool is a container of its own",
                   "write a manifest for it, with its own volumes");
      }
      const std::string_view name = in_.text(tool, "name");
      if (name.empty()) return in_.complain(tool.span(), "a tool has a name", "add name: NAME");
      in_.out().tool(name, in_.text(tool, "description"));
    });
    in_.out().whole_server();
    in_.out().unsaid("tools",
                     "an entry grants to the whole server: its tools are named, and get "
                     "nothing of their own");
  }

  Rules in_;
  Value root_;
};

bool is_server(Value value) {
  if (!has_member(value, "image", Kind::string) && !has_member(value, "remote", Kind::object))
    return false;
  for (const Member member : value.members()) {
    if (!contains(server_keys, member.key.text())) return false;
  }
  return true;
}

}  // namespace

bool is_docker_catalog(const text::Document& document) {
  const Value root = document.root();
  if (!has_member(root, "registry", Kind::object)) {
    return is_server(root) && (root.find("tools") || root.find("allowHosts") ||
                               root.find("secrets") || root.find("volumes") || root.find("title"));
  }
  for (const Member member : root.find("registry")->members()) {
    if (has_member(member.value, "image", Kind::string) ||
        has_member(member.value, "remote", Kind::object) ||
        has_member(member.value, "tools", Kind::array)) {
      return true;
    }
  }
  return false;
}

Checked<Imported> read_docker_catalog(const text::Document& document, const ImportPlace& place) {
  return Reader(document.root(), place).read();
}

}  // namespace capgate::imports
