// A server in its sandbox, asked for its tools: what init, approve and check --live have in common.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "core/policy.h"
#include "mcp/ask_command.h"
#include "sys/fd.h"

namespace capgate::cli {

// ---- for whoever starts a server to ask it ------------------------------------------------------

// Ctrl-C and the like end the server in order, and then this program: they are blocked from now on,
// and are read here.
[[nodiscard]] sys::Fd take_ending_signals();
[[nodiscard]] int exit_after_signal(const sys::Fd& signals);

[[nodiscard]] bool has_ended(const mcp::CommandProblem& problem);
// By the codes of capgate run, which then answers every request with its reason.
[[nodiscard]] bool is_refused_by_run(const mcp::CommandProblem& problem);
// The last lines, as text that cannot do anything to a terminal.
[[nodiscard]] std::vector<std::string> shown_lines(std::string_view errors);

// ---- a server with its own policy, but harmless -------------------------------------------------

inline constexpr Option timeout_option{
    .name = "--timeout", .value = "SECONDS", .help = "for all answers (60; 30 for the first)"};
inline constexpr Option live_allow_option{
    .name = "--allow",
    .value = "CAP",
    .help = "what the server needs to list its tools, besides",
    .repeatable = true};

// What nobody has approved yet must not do anything: of the policy stay reading files and variables
// and starting programs. There is no network, no socket, nothing to write but a HOME that is thrown
// away, and a secret is a word that is none. As words of --allow.
[[nodiscard]] std::vector<std::string> harmless_part(const core::Policy& policy);

struct LiveWish {
  std::string server;  // for messages
  const core::Policy& policy;
  std::vector<std::string> command;
  std::vector<std::string> allow = {};  // besides
  std::optional<std::uint64_t> timeout = {};
};

// Its tools, listed twice in one conversation. On failure everything is said in `output`, and the
// exit code is the error.
[[nodiscard]] std::expected<mcp::ServerTools, int> ask_live(const LiveWish& wish, Output& output);

// --allow and --timeout of the command line.
[[nodiscard]] std::expected<void, int> read_live_options(const Arguments& arguments, LiveWish& wish,
                                                         Output& output);

}  // namespace capgate::cli
