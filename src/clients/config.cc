#include "clients/config.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "base/text.h"
#include "import/sandbox_block.h"
#include "secrets/provider.h"

namespace capgate::clients {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr Code shape_code = Code::manifest_shape;
constexpr Code key_code = Code::manifest_unknown_key;

constexpr std::array<std::string_view, 2> root_keys = {"$schema", "servers"};
constexpr std::array<std::string_view, 9> entry_keys = {"command",      "url",     "manifest",
                                                        "capabilities", "sandbox", "variables",
                                                        "secrets",      "seal",    "description"};
// What the policy of a server that runs here can be written as.
constexpr std::array<std::string_view, 3> policy_keys = {"manifest", "capabilities", "sandbox"};

bool is_text(Value value) {
  return value.is(Kind::string) && !value.text().empty() &&
         std::ranges::none_of(value.text(), is_control);
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
}

class Reader {
 public:
  Reader(const text::Document& document, const ConfigPlace& place)
      : root_(document.root()), source_(document.source()), place_(place) {}

  Checked<Config> read() {
    if (const auto servers = find_servers()) {
      for (const Member member : servers->members()) read_server(member);
    }
    if (mistakes_.empty()) return std::move(out_);
    hide_values();
    sort_diagnostics(mistakes_);
    return std::unexpected(std::move(mistakes_));
  }

 private:
  void complain(Span where, std::string message, std::string help) {
    mistakes_.push_back({.code = shape_code,
                         .where = where,
                         .message = std::move(message),
                         .help = std::move(help)});
  }

  void check_keys(Value object, std::span<const std::string_view> known, std::string_view owner) {
    for (const Member member : object.members()) {
      const std::string_view key = member.key.text();
      if (contains(known, key)) continue;
      const auto meant = closest(key, known);
      std::string names;
      for (const std::string_view name : known) {
        if (!name.starts_with('$')) names += format("{}{}", names.empty() ? "" : ", ", name);
      }
      mistakes_.push_back(
          {.code = key_code,
           .where = member.key.span(),
           .message = format("{} has no {}", owner, quoted(key)),
           .help = meant ? format("did you mean {}?", *meant) : format("known are: {}", names)});
    }
  }

  std::optional<Value> find_servers() {
    constexpr std::string_view help = "write servers: {NAME: {command: [PROGRAM], ...}}";
    if (!root_.is(Kind::object)) {
      complain(root_.span(), "a config is a mapping", std::string(help));
      return {};
    }
    check_keys(root_, root_keys, "a config");
    const auto servers = root_.find("servers");
    if (servers && servers->is(Kind::object)) return servers;
    complain(servers ? servers->span() : Span::at(root_.span().begin, root_.span().begin),
             servers ? "servers is a mapping" : "servers is missing", std::string(help));
    return {};
  }

  void read_server(Member member) {
    ServerConfig server{.name = std::string(member.key.text()), .where = member.key.span()};
    if (!is_server_name(server.name)) {
      complain(server.where, format("{} is no name of a server", quoted(server.name)),
               "write up to 64 letters, digits, '-', '_' and '.'");
    }
    const Value entry = member.value;
    if (!entry.is(Kind::object)) {
      complain(entry.span(), "an entry of servers is a mapping", "write {command: [PROGRAM], ...}");
      return;
    }
    check_keys(entry, entry_keys, "an entry of servers");
    check_choices(member);
    read_command(entry, server);
    read_url(entry, server);
    read_manifest(entry, server);
    read_capabilities(entry, server);
    read_sandbox(entry, server);
    read_variables(entry, server);
    read_secrets(entry, server);
    read_seal(entry, server);
    if (const auto text = entry.find("description"); text && !text->is(Kind::string)) {
      complain(text->span(), "description is a text", "put it into quotes");
    }
    out_.servers.push_back(std::move(server));
  }

  void check_choices(Member member) {
    std::vector<std::string> given;
    const bool is_http = member.value.find("url").has_value();
    for (const Member part : member.value.members()) {
      const std::string_view key = part.key.text();
      const bool is_of_process =
          contains(policy_keys, key) || key == "command" || key == "secrets" || key == "seal";
      if (is_http && is_of_process) {
        complain(part.key.span(), format("{} on an HTTP server", key),
                 "a server with a url does not run here, so nothing here can confine it: remove "
                 "one of the two");
      }
      if (contains(policy_keys, key)) given.emplace_back(key);
    }
    if (is_http || given.size() < 2) return;
    complain(member.key.span(), format("{} are one too many", join(given, " and ")),
             "keep one of manifest, capabilities and sandbox");
  }

  void read_command(Value entry, ServerConfig& out) {
    const auto command = entry.find("command");
    if (!command) return;
    if (!command->is(Kind::array) || command->count() == 0) {
      complain(command->span(), "command is a list of words",
               "write command: [PROGRAM, ARGUMENT]; no shell reads it");
      return;
    }
    for (const Value word : command->elements()) {
      // A word may be empty; no word can hold a zero byte.
      if (word.is(Kind::string) && !word.text().contains('\0')) {
        out.command.emplace_back(word.text());
      } else {
        complain(word.span(), "a word of a command is a text", "put it into quotes");
      }
    }
    if (!out.command.empty() && out.command.front().empty()) {
      complain(command->span(), "a command starts with its program", "name the program first");
    }
  }

  void read_url(Value entry, ServerConfig& out) {
    const auto url = entry.find("url");
    if (!url) return;
    if (!is_text(*url)) {
      complain(url->span(), "url is a text", "write url: \"https://mcp.example.com\"");
      return;
    }
    out.url = url->text();
  }

  void read_manifest(Value entry, ServerConfig& out) {
    const auto manifest = entry.find("manifest");
    if (!manifest) return;
    if (!is_text(*manifest)) {
      complain(manifest->span(), "manifest is a path or catalog:NAME",
               "write manifest: github.json, or manifest: catalog:github");
      return;
    }
    const std::string_view text = manifest->text();
    if (text.starts_with(catalog_prefix) || text.starts_with('/')) {
      out.manifest = text;
    } else if (text.starts_with("~/")) {
      out.manifest = place_.home + std::string(text.substr(1));
    } else {
      out.manifest = format("{}/{}", place_.directory, text);
    }
  }

  void read_capabilities(Value entry, ServerConfig& out) {
    const auto list = entry.find("capabilities");
    if (!list) return;
    if (!list->is(Kind::array)) {
      complain(list->span(), "capabilities are a list of texts",
               "write [\"fs:read:/workspace/**\"], or [] for none");
      return;
    }
    for (const Value item : list->elements()) {
      if (!item.is(Kind::string)) {
        complain(item.span(), "a capability is a text", "write \"fs:read:/workspace/**\"");
        continue;
      }
      out.capabilities.emplace_back(item.text());
      out.capability_spans.push_back(item.locate(0, item.text().size()));
    }
  }

  void read_sandbox(Value entry, ServerConfig& out) {
    const auto block = entry.find("sandbox");
    if (!block) return;
    auto read =
        imports::read_sandbox_block(*block, {.directory = place_.directory, .home = place_.home});
    if (!read) {
      for (Diagnostic& mistake : read.error()) mistakes_.push_back(std::move(mistake));
      return;
    }
    out.enabled = read->enabled;
    out.capabilities = std::move(read->capabilities);
    out.capability_spans = std::move(read->spans);
    out.notes = std::move(read->notes);
  }

  // The members of an optional mapping.
  template <typename Use>
  void each_member(Value entry, std::string_view key, std::string_view example, Use use) {
    const auto mapping = entry.find(key);
    if (!mapping) return;
    if (!mapping->is(Kind::object)) {
      complain(mapping->span(), format("{} is a mapping", key),
               format("write {}: {{{}}}", key, example));
      return;
    }
    for (const Member member : mapping->members()) use(member);
  }

  void read_variables(Value entry, ServerConfig& out) {
    each_member(entry, "variables", "ROOT: /srv/project", [&](Member member) {
      const std::string_view name = member.key.text();
      if (!is_variable_name(name)) {
        complain(member.key.span(), format("{} is no name of a variable", quoted(name)),
                 "write upper-case letters, digits and underscores");
      } else if (name == "HOME" || name == "XDG_RUNTIME_DIR") {
        // Which paths hold credentials depends on them.
        complain(member.key.span(), format("{} is the caller's own", name),
                 format("leave it out; ${{{}}} is known", name));
      } else {
        read_values(member, out);
      }
    });
  }

  void read_values(Member member, ServerConfig& out) {
    core::Binding binding{.name = std::string(member.key.text())};
    const auto add = [&](Value value) {
      if (is_text(value)) {
        binding.values.emplace_back(value.text());
      } else {
        complain(value.span(), format("a value of {} is a text", binding.name),
                 format("write {0}: /srv/project, or {0}: [/srv/one, /srv/two]", binding.name));
      }
    };
    if (!member.value.is(Kind::array)) {
      add(member.value);
    } else {
      for (const Value value : member.value.elements()) add(value);
    }
    if (!binding.values.empty()) out.variables.push_back(std::move(binding));
  }

  void read_secrets(Value entry, ServerConfig& out) {
    each_member(entry, "secrets", "TOKEN: \"cmd:pass show token\"", [&](Member member) {
      const std::string_view name = member.key.text();
      const Value value = member.value;
      if (!is_text(value)) {
        complain(member.key.span(), "a secret is named by its provider",
                 "write NAME: \"PROVIDER:REF\", as run --secret takes it");
        values_.push_back(value.span());
        return;
      }
      std::string text = format("{}={}", name, value.text());
      if (auto binding = secrets::parse_binding(text); !binding) {
        complain(member.key.span(), std::move(binding.error().message),
                 std::move(binding.error().help));
        values_.push_back(value.span());
        return;
      }
      out.secrets.push_back(std::move(text));
    });
  }

  void read_seal(Value entry, ServerConfig& out) {
    const auto seal = entry.find("seal");
    if (!seal) return;
    if (!seal->is(Kind::boolean)) {
      complain(seal->span(), "seal is true or false",
               "write seal: true to seal every env:inject, or leave it out");
      return;
    }
    out.seal = seal->text() == "true";
  }

  // A mistake is shown with its line. Where that line may hold a value, only its number is said.
  void hide_values() {
    const Source source("", source_);
    const auto line = [&](std::size_t offset) { return source.position(offset).line; };
    for (Diagnostic& mistake : mistakes_) {
      const std::size_t at = line(mistake.where.begin);
      const bool is_shown = std::ranges::any_of(
          values_, [&](Span value) { return line(value.begin) <= at && at <= line(value.end); });
      if (!is_shown) continue;
      mistake.message = format("line {}: {}", at, mistake.message);
      mistake.where = Span::nowhere();
    }
  }

  Value root_;
  std::string_view source_;
  const ConfigPlace& place_;
  Config out_;
  Diagnostics mistakes_;
  std::vector<Span> values_;  // of `secrets`, where they are not what a provider is written as
};

}  // namespace

bool is_server_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name != "." && name != ".." &&
         std::ranges::all_of(
             name, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

const ServerConfig* Config::find(std::string_view name) const {
  const auto server = std::ranges::find(servers, name, &ServerConfig::name);
  return server == servers.end() ? nullptr : &*server;
}

Checked<Config> parse_config(const text::Document& document, const ConfigPlace& place) {
  return Reader(document, place).read();
}

}  // namespace capgate::clients
