// The server's stderr, from its private pipe to ours. A shared one could be read back through
// /proc/self/fd. It never blocks the supervisor. A flood is cut and counted, and read at a pace
// that costs next to nothing: the server waits. On a terminal the words are made safe
// (terminal_text.h).
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox/terminal_text.h"

namespace capgate::sandbox {

// False if nobody reads for half a second: then the rest is left out. The server could have filled
// the pipe, and whoever waits for words there waits for ever.
bool write_if_read(int fd, std::string_view text);

class StderrCopy {
 public:
  explicit StderrCopy(int from);

  // What to poll for next: the server's words, or room for them.
  [[nodiscard]] pollfd wanted() const;
  void step();
  // Everything that is left, when no one writes any more.
  void drain();

  // When a flood is looked at again.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> wakes() const;

 private:
  [[nodiscard]] bool is_paused() const;
  void read_some();
  void write_some();
  void discard();
  void pass(std::string_view words);
  void refill();
  void tell_dropped();

  int from_;
  std::string pending_;
  TerminalText text_;
  bool is_terminal_;
  bool open_ = true;
  std::uint64_t allowance_;
  std::uint64_t dropped_ = 0;
  std::chrono::steady_clock::time_point refilled_;
  std::chrono::steady_clock::time_point paused_until_;
};

}  // namespace capgate::sandbox
