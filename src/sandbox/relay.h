// Bytes on their way between a descriptor of the caller's and a pipe that the server has instead.
// They never enter this process's memory.
//
//   auto input = Relay::of_input(relay_needed)     the server's end: input.inner(), its fd 0
//   poll(input.wanted()) ... input.step()
//
// Two things make it necessary. A socket that the caller made belongs to the host's network:
// through it, a server could ask the kernel about interfaces and abstract names there. And a pipe
// can be opened again through /proc/self/fd: a server that holds the writing end of its own input
// never lets it end, so that nobody would see that the client is gone.
#pragma once

#include <poll.h>

#include <expected>

#include "sys/fd.h"

namespace capgate::sandbox {

class Relay {
 public:
  enum class Way : unsigned char { to_server, from_server };

  Relay() = default;  // none: the server has the caller's descriptor itself

  // Between `outer` and a new pipe; the error is an errno.
  [[nodiscard]] static std::expected<Relay, int> make(int outer, Way way);

  [[nodiscard]] bool is_used() const { return way_is_known_; }
  // The server's end, -1 once it was released.
  [[nodiscard]] int inner() const { return inner_.get(); }
  // When the server has it.
  void release_inner() { inner_ = sys::Fd(); }

  // What to poll for next: bytes, or room for them. A negative descriptor: nothing any more.
  [[nodiscard]] pollfd wanted() const;
  void step();
  // No byte will follow.
  [[nodiscard]] bool is_done() const { return is_done_; }
  // Bytes that the server has not read yet.
  [[nodiscard]] bool has_unread() const;

 private:
  [[nodiscard]] int from() const { return way_ == Way::to_server ? outer_ : pipe_.get(); }
  [[nodiscard]] int to() const { return way_ == Way::to_server ? pipe_.get() : outer_; }
  void finish();

  Way way_ = Way::to_server;
  bool way_is_known_ = false;
  bool is_full_ = false;
  bool is_done_ = false;
  int outer_ = -1;
  sys::Fd pipe_;   // our end
  sys::Fd inner_;  // the server's
};

// What the server inherits as 0 and 1.
struct Stdio {
  Relay input;
  Relay output;
};

// Relays where the caller's descriptors must not be the server's own: sockets always, and with
// `input_ends_it` (--grace) a pipe that is its input.
[[nodiscard]] std::expected<Stdio, int> make_stdio(bool input_ends_it);

}  // namespace capgate::sandbox
