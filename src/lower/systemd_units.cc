#include "lower/systemd_units.h"

#include <set>

#include "base/format.h"
#include "base/ranges.h"
#include "lower/safe_name.h"
#include "lower/systemd_words.h"

namespace capgate::lower {
namespace {

// What both services have. No MemoryDenyWriteExecute: node, java and others compile at run time.
// ProtectSystem and PrivateTmp stay out of the way of the empty root and the sized /tmp: strict
// would replace the empty root by the host's, without a word (ADR 32).
constexpr std::string_view isolation = R"(NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
PrivateNetwork=yes
PrivateUsers=yes
PrivateDevices=yes
PrivateIPC=yes
PrivateMounts=yes
ProtectSystem=yes
ProtectProc=invisible
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
KeyringMode=private
DevicePolicy=closed
IPAddressDeny=any
IPAddressAllow=localhost
NotifyAccess=none)";

constexpr std::string_view broker = R"(
Type=notify
User={}
DynamicUser=yes
StateDirectory={}
StateDirectoryMode=0711
LogsDirectory={}
LogsDirectoryMode=0700
UMask=0077
Restart=on-failure
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
PrivateDevices=yes
PrivateIPC=yes
PrivateTmp=yes
PrivateUsers=yes
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX
RemoveIPC=yes
KeyringMode=private
DevicePolicy=closed
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp
LimitCORE=0
MemoryMax=268435456
MemorySwapMax=0
TasksMax=64
)";

// Left out of the allowlist: what systemd 252 does not know and would warn of, and what only
// changes how the server is scheduled. Programs go on without them.
constexpr std::string_view left_out[] = {
    "getxattrat",     "ioprio_set",         "listxattrat",       "mbind",
    "mseal",          "removexattrat",      "sched_setaffinity", "sched_setattr",
    "sched_setparam", "sched_setscheduler", "set_mempolicy",     "set_mempolicy_home_node",
    "setpriority",    "setrlimit",          "setxattrat"};

constexpr std::size_t longest_unit = 64;
// With the prefix 31, the most that user names may have.
constexpr std::size_t longest_user = 23;

}  // namespace

UnitNames unit_names(std::string_view server) {
  const std::string name = safe_name(server, longest_unit);
  const std::string user = "capgate-" + safe_name(server, longest_user);
  return {.socket = name + ".socket",
          .service = name + "@.service",
          .user = user,
          .sysusers = user + ".conf",
          .hosts_file = name + ".hosts",
          .environment_file = name + ".env",
          .egress_policy = name + "-egress.yaml",
          .egress_service = name + "-egress.service",
          .egress_directory = "/var/lib/private/capgate/" + name,
          .state = "capgate/" + name,
          .listen = "/run/capgate/" + name + ".sock"};
}

std::string socket_unit(const UnitNames& names, std::string_view server) {
  return format(
      "[Unit]\nDescription=MCP server {}, for clients\n\n[Socket]\nListenStream={}\nAccept=yes\n"
      "MaxConnections=16\nSocketMode=0600\nRemoveOnStop=yes\n\n[Install]\nWantedBy=sockets."
      "target\n",
      unit_prose(server), names.listen);
}

std::string egress_unit(const UnitNames& names, std::string_view server) {
  // "cg-" and what tells the servers apart: the broker and its server must not be one user.
  const std::string user = "cg-egress-" + safe_name(server, 21);
  std::string lines(broker);
  for (const std::string& value : {user, names.state, names.state}) {
    lines.replace(lines.find("{}"), 2, value);
  }
  return format(
      "[Unit]\nDescription=Egress of MCP server {}\nWants=network-online.target\n"
      "After=network-online.target\n\n[Service]\nExecStart={}{}",
      unit_prose(server),
      unit_command({"/usr/bin/capgate", "egress", "--policy", "/etc/capgate/" + names.egress_policy,
                    "--listen", "unix:" + names.egress_directory + "/egress.sock", "--socket-mode",
                    "0666", "--audit", "/var/log/private/" + names.state + "/audit.jsonl"}),
      lines);
}

std::string_view isolation_lines() { return isolation; }

std::string system_call_lines(const SeccompNeeds& needs, Arch arch) {
  // Threads and processes are one call with different arguments, so both can be made.
  SeccompNeeds wanted = needs;
  wanted.processes = true;
  std::set<std::string_view> names;
  for (const Rule& rule : seccomp_rules(wanted)) {
    if (rule.action != allow || syscall_number(arch, rule.call) == core::absent) continue;
    const std::string_view name = core::syscall_info(rule.call).name;
    if (!contains(left_out, name)) names.insert(name);
  }
  std::string out =
      "SystemCallArchitectures=native\nSystemCallErrorNumber=ENOSYS\nSystemCallFilter=";
  std::size_t column = 0;
  for (const std::string_view name : names) {
    if (column + name.size() > 100) {
      out += "\nSystemCallFilter=";
      column = 0;
    }
    out += format("{}{}", column == 0 ? "" : " ", name);
    column += name.size() + 1;
  }
  return out;
}

}  // namespace capgate::lower
