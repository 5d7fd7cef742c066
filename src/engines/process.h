// Starts a program of the host with exactly the descriptors that it is given.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <expected>
#include <string>
#include <vector>

#include "sandbox/host_path.h"
#include "sandbox/launch.h"
#include "sys/fd.h"

namespace capgate::engines {

// The program of an engine, by its fixed path: root's, and nobody else can write it. Never looked
// up in PATH, which is the caller's and perhaps a project's.
[[nodiscard]] std::expected<std::string, sandbox::Refusal> find_engine(std::string_view name);

struct PassedFd {
  int from = -1;
  int to = -1;  // 0, 1 and 2 are passed on as they are where none of these is named
};

struct Start {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::vector<PassedFd> descriptors;
  sandbox::Placement placement = {};
};

struct Process {
  sys::Fd pidfd;
  pid_t pid = -1;
};

// It dies with this process, and has a session of its own: a terminal's signals are for capgate,
// which passes them on.
[[nodiscard]] std::expected<Process, sandbox::Refusal> start_process(const Start& start);

// Waits for its end: 128 + n if signal n was it.
[[nodiscard]] int reap(const Process& process);

struct Finished {
  int status = 125;
  std::string output;  // both streams, the first 64 KiB
};
// Runs a command of the engine to its end, or kills it.
[[nodiscard]] std::expected<Finished, sandbox::Refusal> run_command(
    const Start& start, std::chrono::milliseconds longest);

struct Pipe {
  sys::Fd read;
  sys::Fd write;
};
[[nodiscard]] std::expected<Pipe, sandbox::Refusal> make_pipe();

}  // namespace capgate::engines
