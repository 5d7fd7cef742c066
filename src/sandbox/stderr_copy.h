// The server's stderr, from its private pipe to ours. A shared one could be read back through
// /proc/self/fd. It never blocks the supervisor, and a flood is cut and counted.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace capgate::sandbox {

class StderrCopy {
 public:
  explicit StderrCopy(int from);

  // What to poll for next: the server's words, or room for them.
  [[nodiscard]] pollfd wanted() const;
  void step();
  // Everything that is left, when no one writes any more.
  void drain();

  [[nodiscard]] bool is_throttled() const { return dropped_ > 0; }

 private:
  void read_some();
  void write_some();
  void refill();
  void tell_dropped();

  int from_;
  std::string pending_;
  bool open_ = true;
  std::uint64_t allowance_;
  std::uint64_t dropped_ = 0;
  std::chrono::steady_clock::time_point refilled_;
};

}  // namespace capgate::sandbox
