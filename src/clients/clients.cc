#include "clients/clients.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/text.h"
#include "core/client_places.h"
#include "sandbox/host_path.h"
#include "secrets/command.h"

namespace capgate::clients {
namespace {

using Path = std::vector<std::string>;

Shape json_shape(std::vector<Path> paths) {
  return {.syntax = Syntax::json, .paths = std::move(paths)};
}

Shape mcp_servers() { return json_shape({{"mcpServers"}}); }

Shape opencode_shape() {
  return {.syntax = Syntax::json,
          .paths = {{"mcp"}},
          .environment = "environment",
          .command_is_array = true};
}

Shape goose_shape() {
  return {
      .syntax = Syntax::yaml, .paths = {{"extensions"}}, .command = "cmd", .environment = "envs"};
}

Shape list_shape(Syntax syntax, std::string key) {
  return {.syntax = syntax, .paths = {{std::move(key)}}, .is_list = true};
}

Shape codex_shape() { return {.syntax = Syntax::toml, .paths = {{"mcp_servers"}}}; }

Shape claude_code_shape() { return json_shape({{"mcpServers"}, {"projects", "*", "mcpServers"}}); }

// VS Code reads `servers`; a workspace's .mcp.json, which it shares with others, says mcpServers.
Shape vscode_shape() { return json_shape({{"servers"}, {"mcpServers"}}); }

std::vector<Client> widely_used() {
  return {
      {"claude-desktop", "Claude Desktop", mcp_servers()},
      {"claude-code", "Claude Code", claude_code_shape()},
      {"vscode", "VS Code", vscode_shape()},
      {"cursor", "Cursor", mcp_servers()},
      {"windsurf", "Windsurf", mcp_servers()},
      {"zed", "Zed", json_shape({{"context_servers"}})},
      {"codex", "Codex", codex_shape()},
      {"gemini", "Gemini CLI", mcp_servers()},
      {"goose", "Goose", goose_shape()},
      {"continue", "Continue", list_shape(Syntax::yaml, "mcpServers")},
      {"opencode", "OpenCode", opencode_shape()},
      {"copilot", "Copilot CLI", mcp_servers()},
      {"vibe", "Mistral Vibe", list_shape(Syntax::toml, "mcp_servers")},
  };
}

std::vector<Client> others() {
  return {
      {"cline", "Cline", mcp_servers()},
      {"roo", "Roo Code", mcp_servers()},
      {"lmstudio", "LM Studio", mcp_servers()},
      {"kiro", "Kiro", mcp_servers()},
      {"amp", "Amp", json_shape({{"amp.mcpServers"}})},
      {"kimi", "Kimi CLI", mcp_servers()},
      {"factory", "Factory", mcp_servers()},
      {"antigravity", "Antigravity", mcp_servers()},
  };
}

bool is_regular_file(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// ~/.config of a place is XDG_CONFIG_HOME, which may be called anything.
constexpr std::string_view config_home = "~/.config/";

// What of a place does not depend on the machine: ".codex/config.toml".
std::string_view fixed_part(std::string_view place) {
  if (place.starts_with(config_home)) return place.substr(config_home.size());
  return place.substr(place.find('/') + 1);
}

bool ends_with_components(std::string_view path, std::string_view end) {
  return path == end || (path.ends_with(end) && path[path.size() - end.size() - 1] == '/');
}

// Names like settings.json are everybody's.
bool is_of_one_client(std::string_view name) {
  constexpr std::string_view own[] = {
      "claude_desktop_config.json", ".claude.json",  "mcp-config.json",
      "cline_mcp_settings.json",    "opencode.json", "opencode.jsonc"};
  return std::ranges::find(own, name) != std::end(own);
}

// How much of the path says that it is this place; 0: nothing.
std::size_t fit_of(std::string_view path, std::string_view end) {
  const bool is_telling = is_of_one_client(base_name(end));
  if ((is_telling || end.contains('/')) && ends_with_components(path, end)) return end.size();
  return is_telling && base_name(path) == base_name(end) ? 1 : 0;
}

std::optional<Shape> guess_json(std::string_view text) {
  Shape shape;
  const auto add = [&](std::string_view key, Path path) {
    if (text.contains(format("\"{}\"", key))) shape.paths.push_back(std::move(path));
  };
  add("mcpServers", {"mcpServers"});
  if (text.contains("\"projects\"")) add("mcpServers", {"projects", "*", "mcpServers"});
  add("servers", {"servers"});
  add("context_servers", {"context_servers"});
  add("amp.mcpServers", {"amp.mcpServers"});
  if (!shape.paths.empty()) return shape;
  if (text.contains("\"mcp\"")) return opencode_shape();
  return std::nullopt;
}

std::optional<Shape> guess_toml(std::string_view text) {
  if (text.contains("[[mcp_servers]]")) return list_shape(Syntax::toml, "mcp_servers");
  if (text.contains("mcp_servers")) return codex_shape();
  return std::nullopt;
}

std::optional<Shape> guess_yaml(std::string_view text) {
  const std::size_t at = text.find("mcpServers:");
  if (at != std::string_view::npos) {
    Shape shape{.syntax = Syntax::yaml, .paths = {{"mcpServers"}}};
    shape.is_list = trim(text.substr(text.find(':', at) + 1)).starts_with('-');
    return shape;
  }
  if (text.contains("extensions:")) return goose_shape();
  return std::nullopt;
}

}  // namespace

std::span<const Client> clients() {
  static const std::vector<Client> all = [] {
    std::vector<Client> out = widely_used();
    std::ranges::move(others(), std::back_inserter(out));
    for (Client& client : out) client.places = core::places_of_client(client.id);
    return out;
  }();
  return all;
}

const Client* find_client(std::string_view id) {
  const auto found = std::ranges::find(clients(), id, &Client::id);
  return found == clients().end() ? nullptr : &*found;
}

std::optional<std::string> expand_place(std::string_view place, const Surroundings& surroundings) {
  if (place.starts_with(config_home)) {
    const char* value = secrets::find_variable("XDG_CONFIG_HOME", surroundings.environment);
    if (value != nullptr && *value == '/') {
      return format("{}/{}", value, place.substr(config_home.size()));
    }
  }
  const std::size_t slash = place.find('/');
  const std::string_view start = place.substr(0, slash);
  const std::string_view rest = place.substr(slash);
  if (start == "~") return format("{}{}", surroundings.home, rest);
  if (start == ".") return format("{}{}", surroundings.directory, rest);
  const char* value = secrets::find_variable(start.substr(1), surroundings.environment);
  if (value != nullptr && *value == '/') return format("{}{}", value, rest);
  return std::nullopt;
}

std::vector<std::string> all_places(const Surroundings& surroundings) {
  // Another caller may not have set the variables, so the usual places count besides.
  const Surroundings usual{.home = surroundings.home, .directory = surroundings.directory};
  std::vector<std::string> out;
  for (const core::ClientConfig& client : core::client_configs()) {
    for (const std::string_view place : client.places) {
      for (const Surroundings* each : {&surroundings, &usual}) {
        auto path = expand_place(place, *each);
        if (path && std::ranges::find(out, *path) == out.end()) out.push_back(*std::move(path));
      }
    }
  }
  return out;
}

std::vector<ClientPlace> find_configurations(const Surroundings& surroundings, const Client* only) {
  std::vector<ClientPlace> out;
  std::vector<std::string> seen;
  for (const Client& client : clients()) {
    if (only != nullptr && only != &client) continue;
    for (const std::string_view place : client.places) {
      const auto path = expand_place(place, surroundings);
      if (!path || !is_regular_file(*path)) continue;
      std::string real = sandbox::real_path(*path);
      if (std::ranges::find(seen, real) != seen.end()) continue;
      seen.push_back(std::move(real));
      out.push_back({.client = &client, .path = *path});
    }
  }
  return out;
}

const Client* guess_client(std::string_view path) {
  const Client* best = nullptr;
  std::size_t best_fit = 0;
  for (const Client& client : clients()) {
    for (const std::string_view place : client.places) {
      const std::size_t fit = fit_of(path, fixed_part(place));
      if (fit > best_fit) best = &client;
      best_fit = std::max(best_fit, fit);
    }
  }
  return best;
}

std::optional<Shape> guess_shape(std::string_view path, std::string_view text) {
  if (const Client* client = guess_client(path)) return client->shape;
  const std::string_view name = base_name(path);
  if (name.ends_with(".toml")) return guess_toml(text);
  if (name.ends_with(".yaml") || name.ends_with(".yml")) return guess_yaml(text);
  if (name.ends_with(".json") || name.ends_with(".jsonc") || trim(text).starts_with('{')) {
    return guess_json(text);
  }
  return std::nullopt;
}

}  // namespace capgate::clients
