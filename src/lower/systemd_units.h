// The parts of the units that depend on names alone: the socket, the broker, and the lines that
// every server's service has.
#pragma once

#include <string>
#include <string_view>

#include "lower/seccomp.h"

namespace capgate::lower {

struct UnitNames {
  std::string socket;
  std::string service;  // a template: one instance for each connection
  std::string user;
  std::string sysusers;
  std::string hosts_file;        // these three lie in /etc/capgate
  std::string environment_file;  // written by the administrator
  std::string egress_policy;
  std::string egress_service;
  // Of the broker's socket. The real place: below /var/lib a dynamic user has a link, and capgate
  // egress follows none.
  std::string egress_directory;
  std::string state;   // its name below /var/lib and /var/log
  std::string listen;  // where clients connect
};
[[nodiscard]] UnitNames unit_names(std::string_view server);

[[nodiscard]] std::string socket_unit(const UnitNames& names, std::string_view server);
[[nodiscard]] std::string egress_unit(const UnitNames& names, std::string_view server);

// Without the last line end.
[[nodiscard]] std::string_view isolation_lines();
// The names of our table that exist on the architecture. Arguments are not compared: what they
// decide elsewhere is left to Restrict* and to having no capability.
[[nodiscard]] std::string system_call_lines(const SeccompNeeds& needs, Arch arch);

}  // namespace capgate::lower
