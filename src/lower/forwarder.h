// Declared egress in engines other than our own. Beside the sandbox runs
//
//   capgate egress --policy MANIFEST --listen unix:DIR/egress.sock
//
// which puts its socket and a capgate-init into DIR. The sandbox has no network; it sees DIR at
// /run/capgate, read-only, and the server is started by
//
//   /run/capgate/capgate-init forward [--no-processes] [--unix-sockets] -- COMMAND...
//
// which carries a port of the loopback to the socket, says so in the proxy variables, and takes
// from the server what only the forwarder itself needs of the system call filter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lower/common.h"

namespace capgate::lower {

inline constexpr std::string_view forwarder_directory = "/run/capgate";
inline constexpr std::string_view forwarder_program = "/run/capgate/capgate-init";
inline constexpr std::string_view forwarder_reason =
    "declared egress: the broker's socket and the forwarder";

[[nodiscard]] inline bool uses_forwarder(const core::Policy& policy) {
  return !policy.connect.empty();
}

// What stands between capgate-init and the server's command. `needs` are the server's own.
[[nodiscard]] std::vector<std::string_view> forward_words(const SeccompNeeds& needs);

// The command that must run beside the sandbox, and what a server must do to use it.
void add_forwarder_notes(const Input& input, std::vector<std::string>& notes);

// net:listen, requests that this broker does not see, and grants that would give the server the
// forwarder's own directory.
void refuse_beyond_forwarder(const Input& input, Support& support);

}  // namespace capgate::lower
