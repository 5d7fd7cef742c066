#include "egress/io.h"

#include <sys/socket.h>

#include <cerrno>

namespace capgate::egress {

Async<ssize_t> read_some(Loop& loop, Socket& socket, std::span<char> into, Time deadline) {
  for (;;) {
    switch (co_await loop.readable(socket, deadline)) {
      case Woken::ready: break;
      case Woken::late: co_return failed;
      case Woken::cancelled: co_return taken_away;
    }
    const ssize_t size = ::recv(socket.fd(), into.data(), into.size(), MSG_DONTWAIT);
    if (size >= 0) {
      // Less than there was room for: the rest, if any, is told of by a new event. Its end may have
      // been told already.
      const bool is_all = static_cast<std::size_t>(size) < into.size();
      if (is_all && !socket.has_ended && !socket.has_failed) socket.is_readable = false;
      co_return size;
    }
    if (errno == EAGAIN) socket.is_readable = false;
    if (errno != EAGAIN && errno != EINTR) co_return failed;
  }
}

Async<ssize_t> write_all(Loop& loop, Socket& socket, std::string_view bytes, Time deadline) {
  const auto whole = static_cast<ssize_t>(bytes.size());
  while (!bytes.empty()) {
    switch (co_await loop.writable(socket, deadline)) {
      case Woken::ready: break;
      case Woken::late: co_return failed;
      case Woken::cancelled: co_return taken_away;
    }
    const ssize_t size =
        ::send(socket.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(size));
    } else if (errno == EAGAIN) {
      socket.is_writable = false;
    } else if (errno != EINTR) {
      co_return failed;
    }
  }
  co_return whole;
}

void reset_on_close(const Socket& socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace capgate::egress
