// One side of a terminated connection, as the HTTP relays see it: bytes that come and go. TLS in
// the broker (tls_stream.h), plain sockets in tests.
//
// One coroutine reads and another one may write at the same time; never two of either.
#pragma once

#include <sys/types.h>

#include <span>
#include <string_view>

#include "egress/io.h"
#include "egress/loop.h"
#include "egress/task.h"

namespace capgate::seal {

using egress::Async;
using egress::Time;

// Whether a request may reach the origin twice.
enum class Repeats : unsigned char { never, freely };

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Stream(Stream&&) = delete;
  Stream& operator=(Stream&&) = delete;
  virtual ~Stream() = default;

  // The next write begins a request. `freely`: it is all of it.
  virtual void begin_request(Repeats /*repeats*/) {}
  // What is there, at most `into`: a count, or egress::ended (the peer said so: close_notify),
  // egress::failed (also: an end without close_notify, or late) or egress::taken_away.
  virtual Async<ssize_t> read(std::span<char> into, Time deadline) = 0;
  // Everything: its size, egress::failed or egress::taken_away.
  virtual Async<ssize_t> write(std::string_view bytes, Time deadline) = 0;
  // Tells the peer that nothing more comes (close_notify and FIN); what it sends can still be read.
  virtual Async<ssize_t> finish(Time deadline) = 0;
  // Wakes whoever reads or writes, as cancelled: the other direction of the connection is over.
  virtual void cancel() = 0;
};

}  // namespace capgate::seal
