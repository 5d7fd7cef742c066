#include "egress/dial.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace capgate::egress {
namespace {

constexpr std::chrono::milliseconds head_start{250};

struct Attempt {
  SocketPtr socket;
  Address address;
};

// A socket on its way to the address, or null and why.
SocketPtr begin_with(Loop& loop, sys::Fd fd, const Address& address, std::uint16_t port,
                     int& error) {
  const SocketAddress to = to_socket_address(address, port);
  const int on = 1;
  (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const bool begun =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0 ||
      errno == EINPROGRESS;
  error = errno;
  return begun ? loop.adopt(std::move(fd)) : nullptr;
}

SocketPtr begin(Loop& loop, const Address& address, std::uint16_t port, int& error) {
  sys::Fd fd(
      ::socket(address.ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  error = errno;
  return fd.get() < 0 ? nullptr : begin_with(loop, std::move(fd), address, port, error);
}

// The error of a connect that came to its end; 0: connected.
int outcome(const Socket& socket) {
  if (!socket.has_failed) return 0;
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

class Dialling {
 public:
  Dialling(Loop& loop, std::vector<Address> addresses, std::uint16_t port)
      : loop_(loop), addresses_(std::move(addresses)), port_(port) {}

  [[nodiscard]] bool has_more() const { return next_ < addresses_.size(); }
  [[nodiscard]] bool is_trying() const { return !attempts_.empty(); }
  [[nodiscard]] int error() const { return error_; }

  void begin_next() {
    const Address& address = addresses_[next_++];
    if (auto socket = begin(loop_, address, port_, error_)) {
      attempts_.push_back({std::move(socket), address});
    }
  }

  std::vector<Socket*> sockets() {
    std::vector<Socket*> out;
    out.reserve(attempts_.size());
    for (const Attempt& attempt : attempts_) out.push_back(attempt.socket.get());
    return out;
  }

  // Takes out what came to its end; the first that succeeded.
  Dialled harvest() {
    for (auto attempt = attempts_.begin(); attempt != attempts_.end();) {
      if (!attempt->socket->is_writable) {
        ++attempt;
        continue;
      }
      error_ = outcome(*attempt->socket);
      if (error_ == 0) return {.socket = std::move(attempt->socket), .address = attempt->address};
      attempt = attempts_.erase(attempt);
    }
    return {};
  }

 private:
  Loop& loop_;
  std::vector<Address> addresses_;
  std::uint16_t port_;
  std::size_t next_ = 0;
  std::vector<Attempt> attempts_;
  int error_ = 0;
};

}  // namespace

Async<SocketPtr> connect(Loop& loop, sys::Fd fd, Address address, std::uint16_t port,
                         Time deadline) {
  int error = 0;
  SocketPtr socket = begin_with(loop, std::move(fd), address, port, error);
  const bool connected =
      socket && co_await loop.writable(*socket, deadline) == Woken::ready && outcome(*socket) == 0;
  if (!connected) socket.reset();
  co_return socket;
}

Async<Dialled> dial(Loop& loop, std::vector<Address> addresses, std::uint16_t port, Time deadline) {
  Dialling dialling(loop, std::move(addresses), port);
  while (dialling.has_more() || dialling.is_trying()) {
    if (dialling.has_more()) dialling.begin_next();
    if (!dialling.is_trying()) continue;
    const std::vector<Socket*> sockets = dialling.sockets();
    const Time next = dialling.has_more() ? std::min(deadline, loop.now() + head_start) : deadline;
    const Woken woken = co_await loop.any_writable(sockets, next);
    if (woken == Woken::cancelled) co_return Dialled{.why = "the sandbox ends"};
    if (woken == Woken::late && loop.now() >= deadline) {
      co_return Dialled{.why = "no answer in time"};
    }
    if (Dialled done = dialling.harvest(); done.socket) co_return done;
  }
  co_return Dialled{.why = std::strerror(dialling.error())};
}

}  // namespace capgate::egress
