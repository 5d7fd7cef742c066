#include "import/imported.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/path.h"
#include "core/scope.h"
#include "core/sensitive.h"
#include "core/variables.h"
#include "text/json_write.h"

namespace capgate::imports {
namespace {

using core::Capability;
using text::JsonWriter;

constexpr std::string_view default_name = "imported-server";
constexpr std::string_view default_version = "0.0.0";

// What a manifest takes as a name: some text, without control characters, that is UTF-8.
bool is_plain(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, is_control) && !find_invalid_utf8(text);
}

void sort_distinct(std::vector<std::string>& texts) {
  std::ranges::sort(texts);
  const auto [first, last] = std::ranges::unique(texts);
  texts.erase(first, last);
}

void write_capabilities(JsonWriter& json, const std::vector<std::string>& capabilities) {
  json.begin_array();
  for (const std::string& capability : capabilities) json.string(capability);
  json.end_array();
}

// What a variable may stand for: a path, a piece of a path or a host, a port or a size.
constexpr std::string_view stand_ins[] = {"/srv/value", "value", "1"};
// Variables of one capability of which every choice is tried; further ones stand for the same as
// the first ones.
constexpr std::size_t most_chosen = 4;

// Whether the grammar and the rules on scopes take it, where the variables stand for what the
// digits of `choice` say and HOME is a home directory.
Result<std::vector<Capability>> read_with(std::string_view text, std::size_t choice,
                                          std::string_view home) {
  core::Bindings bindings;
  std::array<std::size_t, most_chosen> digits{};
  for (std::size_t& digit : digits) {
    digit = choice % std::size(stand_ins);
    choice /= std::size(stand_ins);
  }
  for (const std::string_view name : core::variables_in(text)) {
    const std::string_view value = stand_ins[digits.at(bindings.size() % most_chosen)];
    bindings.push_back(
        {.name = std::string(name), .values = {std::string(name == "HOME" ? home : value)}});
  }
  auto parsed = TRY(core::parse_capability(text, bindings));
  for (const Capability& capability : parsed) TRY(core::check_scope(capability, home));
  return parsed;
}

// The canonical spelling. What is refused whatever its variables stand for is refused. A text with
// variables keeps its spelling.
Result<std::string> canonical(std::string_view text, std::string_view known_home) {
  const std::string_view home = known_home.empty() ? "/home/somebody" : known_home;
  if (find_invalid_utf8(text)) {
    return fail(Code::doc_encoding, {}, "it is not UTF-8", "");
  }
  const std::size_t variables = std::min(core::variables_in(text).size(), most_chosen);
  const bool has_variables = variables > 0;
  std::size_t choices = 1;
  for (std::size_t i = 0; i < variables; ++i) choices *= std::size(stand_ins);
  auto parsed = read_with(text, 0, home);
  for (std::size_t choice = 1; !parsed && choice < choices; ++choice) {
    auto again = read_with(text, choice, home);
    // The reason that is told is the one for a piece of a path or a host.
    if (again || choice == 1) parsed = std::move(again);
  }
  if (!parsed) return std::unexpected(std::move(parsed).error());
  if (has_variables || parsed->size() != 1) return std::string(text);
  return print(parsed->front());
}

core::FsActions actions_of(Access access) {
  switch (access) {
    case Access::read: return {core::FsAction::read};
    case Access::write: return {core::FsAction::write};
    case Access::read_write: return {core::FsAction::read, core::FsAction::write};
  }
  return {};
}

// A path of the source from the root, or why there is none.
Result<std::string> from_the_root(std::string_view path, const ImportPlace& place) {
  if (path == "~" || path.starts_with("~/")) {
    if (place.home.empty()) {
      return fail(Code::cap_fs_path, {}, "the home directory is not known", "");
    }
    return format("{}{}", place.home, path.substr(1));
  }
  if (path.starts_with('/')) return std::string(path);
  if (path.starts_with('~') || path.empty() || place.directory.empty()) {
    return fail(Code::cap_fs_relative, {}, "the path is not absolute", "");
  }
  return format("{}/{}", place.directory, path.starts_with("./") ? path.substr(2) : path);
}

}  // namespace

std::string_view kind_name(Loss::Kind kind) {
  switch (kind) {
    case Loss::Kind::unsaid: return "unsaid";
    case Loss::Kind::assumed: return "assumed";
    case Loss::Kind::dropped: return "dropped";
  }
  return "";
}

std::string print_manifest(const Imported& imported) {
  JsonWriter json(JsonWriter::Style::pretty);
  write_manifest(imported, json);
  return std::move(json).take() + "\n";
}

void write_manifest(const Imported& imported, JsonWriter& json) {
  json.begin_object();
  json.key("grammar").string("0.1");
  json.key("name").string(imported.name);
  json.key("version").string(imported.version);
  if (!imported.description.empty()) json.key("description").string(imported.description);
  if (imported.seal) json.key("seal").boolean(true);
  json.key("serverCapabilities");
  write_capabilities(json, imported.capabilities);
  json.key("tools").begin_array();
  for (const ImportedTool& tool : imported.tools) {
    json.begin_object().key("name").string(tool.name);
    if (!tool.description.empty()) json.key("description").string(tool.description);
    json.key("capabilities");
    write_capabilities(json, tool.capabilities);
    json.end_object();
  }
  json.end_array().end_object();
}

std::string name_of_file(std::string_view file) {
  std::string_view name = file.substr(file.find_last_of('/') + 1);
  if (const auto dot = name.find_last_of('.'); dot != std::string_view::npos && dot > 0) {
    name = name.substr(0, dot);
  }
  return std::string(is_plain(name) && name != "-" ? name : default_name);
}

Collector::Collector(std::string_view format, const ImportPlace& place) : place_(place) {
  out_.format = format;
}

void Collector::name(std::string_view text) {
  if (is_plain(text)) out_.name = text;
}

void Collector::version(std::string_view text) {
  if (is_plain(text)) out_.version = text;
}

void Collector::description(std::string_view text) {
  if (!find_invalid_utf8(text)) out_.description = text;
}

void Collector::command(std::vector<std::string> words) { out_.command = std::move(words); }

void Collector::tool(std::string_view name, std::string_view description) {
  if (!is_plain(name)) {
    dropped("tools", format("{} is no name of a tool: it is left out", quoted(name)));
    return;
  }
  const auto [known, is_new] = tools_.try_emplace(std::string(name), out_.tools.size());
  tool_ = known->second;
  if (!is_new) {
    assumed("tools", format("the tool {} is given twice: both are one", quoted(name)));
    return;
  }
  out_.tools.push_back(
      {.name = std::string(name),
       .description = find_invalid_utf8(description) ? "" : std::string(description),
       .capabilities = {}});
}

bool Collector::add(std::string capability) {
  auto& list = tool_ == none ? out_.capabilities : out_.tools[tool_].capabilities;
  list.push_back(std::move(capability));
  return true;
}

bool Collector::refuse(std::string_view what, std::string_view subject, const Diagnostic& reason) {
  std::string message = format("{} is not in the manifest: {}", quoted(what), reason.message);
  if (!reason.help.empty()) message += format("; {}", reason.help);
  dropped(subject, std::move(message));
  return false;
}

bool Collector::grant(std::string_view capability, std::string_view subject) {
  auto spelled = canonical(capability, place_.home);
  if (!spelled) return refuse(capability, subject, spelled.error());
  return add(*std::move(spelled));
}

bool Collector::grant(const Capability& capability, std::string_view subject) {
  return grant(print(capability), subject);
}

bool Collector::grant_path(Access access, std::string_view path, std::string_view subject) {
  const auto whole = from_the_root(path, place_);
  if (!whole) return refuse(path, subject, whole.error());
  auto pattern = core::parse_path(*whole);
  if (!pattern) return refuse(path, subject, pattern.error());
  if (whole->ends_with('/') && pattern->shape == core::PathPattern::Shape::node) {
    pattern->shape = core::PathPattern::Shape::tree;
  }
  return grant(core::FsCapability{.actions = actions_of(access), .path = *std::move(pattern)},
               subject);
}

bool Collector::grant_host(std::string_view host, std::string_view subject) {
  auto endpoint = core::parse_endpoint(host);
  if (!endpoint) return refuse(host, subject, endpoint.error());
  const bool has_port = endpoint->port.has_value();
  const Capability capability = core::NetConnect{.endpoint = *std::move(endpoint)};
  if (!grant(capability, subject)) return false;
  if (!has_port) {
    assumed(subject, format("{} has no port, so every port of it may be reached; write {}:443 if "
                            "that is all",
                            quoted(host), escape_for_terminal(print(capability))));
  }
  return true;
}

bool Collector::grant_env(core::EnvCapability::Action action, std::string_view name,
                          std::string_view subject) {
  const bool reads = action == core::EnvCapability::Action::read;
  // The grammar sees a name, never a refinement or a variable that somebody put into it.
  const bool is_word = std::ranges::all_of(name, [](char c) { return is_alnum(c) || c == '_'; });
  if (!is_word) {
    return refuse(name, subject,
                  {.code = Code::cap_env_name, .message = "it is no name of a variable"});
  }
  return grant(format("env:{}:{}", reads ? "read" : "inject", name), subject);
}

bool Collector::keep_fixed_env(std::string_view name, std::string_view subject) {
  if (!core::is_secret_name(name)) return true;
  dropped(subject, format("the source sets {} to a value of its own, which a manifest does not "
                          "hold; granted, it would be your own secret of that name. If the "
                          "server needs it, add env:read:NAME, and set the source's value in "
                          "`env` of the client's entry",
                          quoted(name)));
  return false;
}

void Collector::tell_fixed_env(std::string_view name, std::string_view subject) {
  assumed(subject, format("the source sets {} to a value of its own, which a manifest does not "
                          "hold: the server will get YOUR value of it; set the source's one in "
                          "`env` of the client's entry, or where capgate is started",
                          quoted(name)));
}

bool Collector::grant_program(std::string_view name, std::string_view subject) {
  if (find_any(name, "?$\"") != std::string_view::npos) {
    return refuse(name, subject,
                  {.code = Code::cap_exec_name, .message = "it is no name of a program"});
  }
  return grant(format("exec:spawn:{}", name), subject);
}

void Collector::reserve(std::string_view variable) { names_[std::string(variable)] += 1; }

std::string Collector::variable(std::string_view key, std::string_view wanted) {
  if (const auto known = variables_.find(key); known != variables_.end()) return known->second;
  std::string base;
  for (const char c : wanted) {
    base += is_lower(c) ? static_cast<char>(c - 'a' + 'A') : is_alnum(c) ? c : '_';
  }
  if (base.empty() || is_digit(base.front())) base.insert(0, "_");
  // HOME has a meaning of its own.
  if (base == "HOME") base = "USER_HOME";
  std::string name = base;
  for (std::size_t& taken = names_[base]; taken++ != 0;) {
    name = format("{}_{}", base, taken);
    if (names_.try_emplace(name, 1).second) break;
  }
  variables_.emplace(key, name);
  return name;
}

void Collector::lose(Loss::Kind kind, std::string_view subject, std::string message) {
  if (!told_.insert(format("{} {} {}", kind_name(kind), subject, message)).second) return;
  out_.losses.push_back(
      {.kind = kind, .subject = std::string(subject), .message = std::move(message)});
}

void Collector::unsaid(std::string_view subject, std::string message) {
  lose(Loss::Kind::unsaid, subject, std::move(message));
}
void Collector::assumed(std::string_view subject, std::string message) {
  lose(Loss::Kind::assumed, subject, std::move(message));
}
void Collector::dropped(std::string_view subject, std::string message) {
  lose(Loss::Kind::dropped, subject, std::move(message));
}

Imported Collector::take() && {
  if (out_.name.empty()) {
    out_.name = name_of_file(place_.file);
    assumed("name", format("the source names no server: it is called {}", quoted(out_.name)));
  }
  if (out_.version.empty()) {
    out_.version = default_version;
    assumed("version", format("the source has no version: it is {}", default_version));
  }
  sort_distinct(out_.capabilities);
  const auto note = [&](const std::vector<std::string>& capabilities) {
    for (const std::string& capability : capabilities) {
      for (const auto name : core::variables_in(capability)) out_.variables.emplace_back(name);
    }
  };
  note(out_.capabilities);
  for (ImportedTool& tool : out_.tools) {
    sort_distinct(tool.capabilities);
    note(tool.capabilities);
  }
  sort_distinct(out_.variables);
  return std::move(out_);
}

}  // namespace capgate::imports
