// One JSON-RPC message per line, to and from a server that is not trusted: every wait has an end,
// and no line or conversation can grow without one.
//
//   Framing framing(pipes, {.line = 4 << 20, .bytes = 64 << 20});
//   framing.send(request, deadline);
//   while (const auto line = framing.next(deadline)) read(*line);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "mcp/tools.h"
#include "sys/fd.h"

namespace capgate::mcp {

using Clock = std::chrono::steady_clock;

// The end of what a server writes to stderr: that is what explains a failure.
class ErrorTail {
 public:
  explicit ErrorTail(sys::Fd file) : file_(std::move(file)) {}

  // To be polled; -1 after its end.
  [[nodiscard]] int fd() const { return file_.get(); }
  // Takes what is there. The descriptor must not block.
  void step();
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  sys::Fd file_;
  std::string text_;
};

enum class Stop : std::uint8_t {
  closed,  // the other side is gone
  late,
  cancelled,
  long_line,
  too_much,
  failed,  // this machine refused
};

class Framing {
 public:
  Framing(const Pipes& pipes, const AskLimits& limits) : pipes_(pipes), limits_(limits) {}

  // Must succeed before the others are called.
  [[nodiscard]] bool prepare();

  // `messages` are whole lines.
  [[nodiscard]] std::expected<void, Stop> send(std::string_view messages,
                                               Clock::time_point deadline);
  // A line without its end, valid until the next call. What is not ended by a newline is no line.
  [[nodiscard]] std::expected<std::string_view, Stop> next(Clock::time_point deadline);

 private:
  [[nodiscard]] std::expected<void, Stop> wait(int fd, short events, Clock::time_point deadline);
  [[nodiscard]] std::expected<void, Stop> fill(Clock::time_point deadline);

  Pipes pipes_;
  AskLimits limits_;
  std::string held_;          // what was read; given up to `at_`
  std::size_t at_ = 0;        // the next line begins here
  std::size_t searched_ = 0;  // there is no newline before
  std::size_t received_ = 0;
};

}  // namespace capgate::mcp
