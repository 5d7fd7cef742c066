// Every rule of `capgate check`: its stable ID, its level, what it means and what to do.
//
//   find_rule("NET_ANY")->summary  -> "every host can be reached"
#pragma once

#include <span>
#include <string_view>

#include "review/finding.h"

namespace capgate::review {

namespace rule {
inline constexpr std::string_view closed_world_network = "CLOSED_WORLD_NETWORK";
inline constexpr std::string_view read_only_writes = "READ_ONLY_WRITES";
inline constexpr std::string_view not_destructive_removes = "NOT_DESTRUCTIVE_REMOVES";
inline constexpr std::string_view net_any = "NET_ANY";
inline constexpr std::string_view net_multi_tenant = "NET_MULTI_TENANT";
inline constexpr std::string_view net_no_port = "NET_NO_PORT";
inline constexpr std::string_view net_apex = "NET_APEX";
inline constexpr std::string_view exfiltration_host = "EXFILTRATION_HOST";
inline constexpr std::string_view files_to_anywhere = "FILES_TO_ANYWHERE";
inline constexpr std::string_view secret_many_hosts = "SECRET_MANY_HOSTS";
inline constexpr std::string_view secret_not_sealed = "SECRET_NOT_SEALED";
inline constexpr std::string_view credential_path = "CREDENTIAL_PATH";
inline constexpr std::string_view startup_write = "STARTUP_WRITE";
inline constexpr std::string_view unsafe = "UNSAFE";
inline constexpr std::string_view exec_shell = "EXEC_SHELL";
inline constexpr std::string_view ipc_desktop = "IPC_DESKTOP";
inline constexpr std::string_view unused_server_grant = "UNUSED_SERVER_GRANT";
inline constexpr std::string_view tools_not_told_apart = "TOOLS_NOT_TOLD_APART";
inline constexpr std::string_view tool_without_capabilities = "TOOL_WITHOUT_CAPABILITIES";
inline constexpr std::string_view redundant = "REDUNDANT";
inline constexpr std::string_view ignore_expired = "IGNORE_EXPIRED";
inline constexpr std::string_view ignore_unused = "IGNORE_UNUSED";
}  // namespace rule

[[nodiscard]] std::span<const Rule> lint_rules();
[[nodiscard]] const Rule* find_rule(std::string_view id);  // null: there is none

}  // namespace capgate::review
