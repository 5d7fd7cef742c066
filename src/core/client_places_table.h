// The table behind client_places.h, for those that join it with tables of their own at compile
// time (sensitive_names.cc, sensitive_tables.cc).
#pragma once

#include <cstddef>
#include <string_view>

#include "core/client_places.h"

namespace capgate::core::client_tables {

inline constexpr std::string_view claude_desktop[] = {
    "~/.config/Claude/claude_desktop_config.json", "~/.config/claude/claude_desktop_config.json"};
inline constexpr std::string_view claude_code[] = {"$CLAUDE_CONFIG_DIR/.claude.json",
                                                   "~/.claude.json", "./.mcp.json"};
inline constexpr std::string_view vscode[] = {"./.vscode/mcp.json", "~/.config/Code/User/mcp.json",
                                              "~/.config/Code - Insiders/User/mcp.json",
                                              "~/.vscode-server/data/User/mcp.json", "./.mcp.json"};
inline constexpr std::string_view cursor[] = {"~/.cursor/mcp.json", "./.cursor/mcp.json"};
inline constexpr std::string_view windsurf[] = {"~/.codeium/windsurf/mcp_config.json",
                                                "~/.codeium/mcp_config.json"};
inline constexpr std::string_view zed[] = {"~/.config/zed/settings.json", "./.zed/settings.json"};
inline constexpr std::string_view codex[] = {"$CODEX_HOME/config.toml", "~/.codex/config.toml",
                                             "./.codex/config.toml"};
inline constexpr std::string_view gemini[] = {"~/.gemini/settings.json", "./.gemini/settings.json"};
inline constexpr std::string_view goose[] = {"~/.config/goose/config.yaml"};
inline constexpr std::string_view continue_dev[] = {"~/.continue/config.yaml"};
inline constexpr std::string_view opencode[] = {"~/.config/opencode/opencode.json",
                                                "~/.config/opencode/opencode.jsonc",
                                                "./opencode.json", "./opencode.jsonc"};
inline constexpr std::string_view copilot[] = {"~/.copilot/mcp-config.json"};
inline constexpr std::string_view vibe[] = {"~/.vibe/config.toml"};
inline constexpr std::string_view cline[] = {
    "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
    "cline_mcp_settings.json"};
inline constexpr std::string_view roo[] = {
    "~/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/"
    "mcp_settings.json",
    "./.roo/mcp.json"};
inline constexpr std::string_view lmstudio[] = {"~/.lmstudio/mcp.json"};
inline constexpr std::string_view kiro[] = {"~/.kiro/settings/mcp.json",
                                            "./.kiro/settings/mcp.json"};
inline constexpr std::string_view amp[] = {"~/.config/amp/settings.json"};
inline constexpr std::string_view kimi[] = {"~/.kimi/mcp.json"};
inline constexpr std::string_view factory[] = {"~/.factory/mcp.json", "./.factory/mcp.json"};
inline constexpr std::string_view antigravity[] = {"~/.gemini/antigravity/mcp_config.json"};

inline constexpr ClientConfig all[] = {
    {"claude-desktop", claude_desktop},
    {"claude-code", claude_code},
    {"vscode", vscode},
    {"cursor", cursor},
    {"windsurf", windsurf},
    {"zed", zed},
    {"codex", codex},
    {"gemini", gemini},
    {"goose", goose},
    {"continue", continue_dev},
    {"opencode", opencode},
    {"copilot", copilot},
    {"vibe", vibe},
    {"cline", cline},
    {"roo", roo},
    {"lmstudio", lmstudio},
    {"kiro", kiro},
    {"amp", amp},
    {"kimi", kimi},
    {"factory", factory},
    {"antigravity", antigravity},
};

// How many rows start with `prefix`.
consteval std::size_t count_with(std::string_view prefix) {
  std::size_t count = 0;
  for (const ClientConfig& each : all) {
    for (const std::string_view place : each.places) count += place.starts_with(prefix) ? 1U : 0U;
  }
  return count;
}

}  // namespace capgate::core::client_tables
