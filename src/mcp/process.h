// A program with pipes at its stdin, stdout and stderr, that never outlives its owner.
//
//   auto process = TRY(Process::start("/proc/self/exe", {"capgate", "run", "--", "server"}));
//   ask_tools(process.pipes(cancel));
//   const int status = process.end();
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "mcp/framing.h"
#include "mcp/tools.h"
#include "sys/error.h"
#include "sys/fd.h"

namespace capgate::mcp {

class Process {
 public:
  // `words` with argv[0]; the environment and the working directory are the caller's. It has a
  // process group of its own: what a terminal sends to ours does not reach it, its owner ends it.
  [[nodiscard]] static sys::Sys<Process> start(const std::string& program,
                                               const std::vector<std::string>& words);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process(Process&&) noexcept = default;
  Process& operator=(Process&&) = delete;
  ~Process() { (void)end(std::chrono::milliseconds(0)); }

  [[nodiscard]] Pipes pipes(int cancel);
  [[nodiscard]] const std::string& errors() const { return errors_.text(); }

  // Closes its stdin, waits, sends SIGTERM, waits, kills its children, waits, kills it. Its exit
  // code, or 128 + the signal that ended it.
  int end(std::chrono::milliseconds grace);

 private:
  Process(sys::Fd process, pid_t pid, sys::Fd to, sys::Fd from, sys::Fd errors)
      : process_(std::move(process)),
        pid_(pid),
        to_(std::move(to)),
        from_(std::move(from)),
        errors_(std::move(errors)) {}
  [[nodiscard]] bool has_ended_by(Clock::time_point deadline);

  sys::Fd process_;
  pid_t pid_;
  sys::Fd to_;
  sys::Fd from_;
  ErrorTail errors_;
  int status_ = 0;
};

}  // namespace capgate::mcp
