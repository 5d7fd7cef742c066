// Starts a server, asks it for its tools, and ends it.
//
//   const auto tools = ask_command({.program = "/proc/self/exe",
//                                   .words = {"capgate", "run", "--", "node", "server.js"}});
#pragma once

#include <chrono>
#include <expected>
#include <string>
#include <vector>

#include "mcp/tools.h"

namespace capgate::mcp {

struct AskedCommand {
  std::string program;             // a path
  std::vector<std::string> words;  // with argv[0]
  AskLimits limits = {};           // of each of the two starts that there may be
  std::chrono::milliseconds grace = std::chrono::seconds(2);  // before SIGTERM, and before SIGKILL
  int cancel = -1;                                            // see Pipes
};

struct CommandProblem {
  AskProblem asked;
  int status = 0;      // how it ended, asked to or not: an exit code, or 128 + the signal
  std::string errors;  // the end of what it wrote to stderr, as it is
};

// A server that ends on the question of the modern era is started once more, without it.
[[nodiscard]] std::expected<ServerTools, CommandProblem> ask_command(const AskedCommand& command);

}  // namespace capgate::mcp
