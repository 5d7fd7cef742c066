// A server that an engine runs: what the supervisor needs to know of it, and can do to it.
#pragma once

#include <poll.h>

#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "engines/container.h"
#include "engines/engine.h"
#include "engines/process.h"
#include "sandbox/limits.h"
#include "sandbox/prelude.h"

namespace capgate::engines {

class Server {
 public:
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;
  // Nothing of it is left.
  virtual ~Server() = default;

  [[nodiscard]] const Process& process() const { return process_; }
  [[nodiscard]] int errors() const { return errors_.get(); }

  // What the engine says besides, or -1. step() when it is readable, and once after the end.
  [[nodiscard]] virtual int fd() const = 0;
  virtual void step() = 0;

  // To the server itself, not to the engine's program.
  virtual void pass(int signal) = 0;
  // The server with everything that it started.
  virtual void kill() = 0;

  // After the end of process(): the server's exit code, or why it never ran.
  [[nodiscard]] virtual std::expected<int, sandbox::Refusal> result(int status) = 0;

 protected:
  Process process_;
  sys::Fd errors_;  // its stderr
};

// What a server is started with.
struct Parts {
  const EngineRun& run;
  const sandbox::Prepared& prepared;
  const sandbox::Limits& limits;
  const Container& container;  // empty for bwrap
};

[[nodiscard]] std::expected<std::unique_ptr<Server>, sandbox::Refusal> start_bwrap(
    const Parts& parts);
[[nodiscard]] std::expected<std::unique_ptr<Server>, sandbox::Refusal> start_container(
    const Parts& parts);

// NAME=VALUE of a declared variable. A value that is not there is a refusal.
[[nodiscard]] std::expected<std::string, sandbox::Refusal> declared_variable(
    const std::string& name, const sandbox::Prepared& prepared);

// A descriptor of the artifact with its contents, to be read from the start.
[[nodiscard]] std::expected<sys::Fd, sandbox::Refusal> artifact_file(std::string_view contents);

}  // namespace capgate::engines
