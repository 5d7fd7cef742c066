// A cgroup of one's own from the user's systemd: a transient scope with Delegate=yes, asked for
// over the session bus, as `systemd-run --user --scope` does.
//
//   if (auto scope = join_systemd_scope(*session_bus())) ...   this process is in
//   scope->directory + "/supervisor", and may make limited cgroups beside it.
//
// Nobody has to remove it. systemd does when its last process has ended, also where this one was
// killed. Where there is no bus the answer is immediate; a bus that does not answer is given up
// after `patience`, and what it does later only moves this process, which then has no limit of its
// own.
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace capgate::sandbox {

// The path of the session bus's socket: from DBUS_SESSION_BUS_ADDRESS or XDG_RUNTIME_DIR, or where
// systemd makes it.
[[nodiscard]] std::optional<std::string> session_bus();

// "unix:path=/run/user/1000/bus,guid=..." -> the path. Other transports (abstract names, TCP,
// autolaunch) are not what a desktop's systemd listens on.
[[nodiscard]] std::optional<std::string> bus_path(std::string_view address);

// Why there is none, as part of a sentence: "the session bus did not answer in time".
using ScopeFailure = std::string;

inline constexpr std::chrono::milliseconds scope_patience{2000};

// The scope's directory. This process is then in a child of it, so that siblings can be limited,
// and every controller that systemd delegates is enabled for them.
[[nodiscard]] std::expected<std::string, ScopeFailure> join_systemd_scope(
    const std::string& bus, std::chrono::milliseconds patience = scope_patience);

}  // namespace capgate::sandbox
