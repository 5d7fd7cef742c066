// The server's stderr, from its private pipe to ours. A shared one could be read back through
// /proc/self/fd. It never blocks the supervisor, and a flood is cut and counted.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

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
