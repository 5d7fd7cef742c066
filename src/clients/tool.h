// Runs a program of the user's, such as npm, and keeps what it writes.
//
//   const auto ended = run_tool({.words = {"npm", "config", "get", "registry"}, ...});
//   ended->status, ended->out, ended->err
//
// No shell, and no terminal; it is killed with its process group when its time is over, and when
// this process dies.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "clients/store.h"

namespace capgate::clients {

struct Tool {
  std::vector<std::string> words;  // the first one is a path
  std::vector<std::string> environment;
  std::string directory;  // where it starts
  std::chrono::seconds limit{30};
  std::function<void()> while_waiting = {};         // a few times a second; may be empty
  std::string input = {};                           // its standard input
  std::size_t most_output = std::size_t{1} << 20U;  // of `out`; the rest is thrown away
};

struct ToolEnd {
  int status = 0;   // exit status, or 128 and the signal
  std::string out;  // the first bytes of it
  std::string err;  // the last bytes of it
};

[[nodiscard]] Stored<ToolEnd> run_tool(const Tool& tool);

}  // namespace capgate::clients
