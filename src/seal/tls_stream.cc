#include "seal/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace capgate::seal {
namespace {

using egress::Woken;

// Then others have their turn: limits and clocks, too.
constexpr std::size_t most_in_a_row = std::size_t{16} << 20U;

// ---- what OpenSSL reads and writes through
// -------------------------------------------------------

TlsStream::Wire& wire_of(BIO* bio) { return *static_cast<TlsStream::Wire*>(BIO_get_data(bio)); }

int read_wire(BIO* bio, char* into, int size) {
  TlsStream::Wire& wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  if (wire.taken < wire.first_bytes.size()) {
    const std::size_t count =
        std::min(static_cast<std::size_t>(size), wire.first_bytes.size() - wire.taken);
    wire.first_bytes.copy(into, count, wire.taken);
    wire.taken += count;
    return static_cast<int>(count);
  }
  // Asking the kernel again would only say the same.
  if (!wire.socket.is_readable) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const ssize_t got = ::recv(wire.socket.fd(), into, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got >= 0) {
    // See read_some in egress/io.cc.
    const bool is_all = got < size;
    if (is_all && !wire.socket.has_ended && !wire.socket.has_failed) {
      wire.socket.is_readable = false;
    }
    return static_cast<int>(got);
  }
  if (errno == EAGAIN) wire.socket.is_readable = false;
  if (errno == EAGAIN || errno == EINTR) BIO_set_retry_read(bio);
  return -1;
}

int write_wire(BIO* bio, const char* bytes, int size) {
  TlsStream::Wire& wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  const ssize_t sent =
      ::send(wire.socket.fd(), bytes, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<int>(sent);
  if (errno == EAGAIN) wire.socket.is_writable = false;
  if (errno == EAGAIN || errno == EINTR) BIO_set_retry_write(bio);
  return -1;
}

long control_wire(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int create_wire(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

// One for the whole process.
BIO_METHOD* wire_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "capgate");
    const bool is_complete = made != nullptr && BIO_meth_set_read(made, read_wire) == 1 &&
                             BIO_meth_set_write(made, write_wire) == 1 &&
                             BIO_meth_set_ctrl(made, control_wire) == 1 &&
                             BIO_meth_set_create(made, create_wire) == 1;
    return is_complete ? made : nullptr;
  }();
  return method;
}

}  // namespace

TlsStream::TlsStream(egress::Loop& loop, egress::Socket& socket, SslPtr ssl,
                     std::string first_bytes)
    : loop_(loop),
      socket_(socket),
      wire_{.socket = socket, .first_bytes = std::move(first_bytes)},
      ssl_(std::move(ssl)) {
  BIO* bio = wire_method() == nullptr ? nullptr : BIO_new(wire_method());
  if (bio == nullptr) return;  // every call fails then, with "BIO not set"
  BIO_set_data(bio, &wire_);
  SSL_set_bio(ssl_.get(), bio, bio);
}

std::string_view TlsStream::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

// The second one has the first one's deadline, and tries again when that has passed.
Async<Woken> TlsStream::wait_for(Event event, Time deadline) {
  bool& is_awaited = is_awaited_[static_cast<std::size_t>(event)];
  if (is_awaited) {
    has_second_ = true;
    co_await first_woken_;
    co_return woken_ == Woken::late ? Woken::ready : woken_;
  }
  is_awaited = true;
  Woken woken = Woken::ready;
  if (event == Event::readable) {
    woken = co_await loop_.readable(socket_, deadline);
  } else {
    woken = co_await loop_.writable(socket_, deadline);
  }
  is_awaited = false;
  if (std::exchange(has_second_, false)) {
    woken_ = woken;
    first_woken_.notify();
  }
  co_return woken;
}

Async<TlsStream::Next> TlsStream::wait(int result, Time deadline) {
  Woken woken = Woken::ready;
  in_a_row_ = 0;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: woken = co_await wait_for(Event::readable, deadline); break;
    case SSL_ERROR_WANT_WRITE: woken = co_await wait_for(Event::writable, deadline); break;
    case SSL_ERROR_ZERO_RETURN: co_return Next::over;
    default: co_return Next::failed;
  }
  switch (woken) {
    case Woken::ready: co_return is_gone_ ? Next::taken_away : Next::again;
    case Woken::late: co_return Next::failed;
    case Woken::cancelled: break;
  }
  co_return Next::taken_away;
}

Async<TlsStream::Shaken> TlsStream::handshake(Time deadline) {
  for (;;) {
    if (is_gone_) co_return Shaken::taken_away;
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) co_return Shaken::done;
    switch (co_await wait(result, deadline)) {
      case Next::again: break;
      case Next::taken_away: co_return Shaken::taken_away;
      case Next::over:
      case Next::failed: co_return Shaken::failed;
    }
  }
}

Async<ssize_t> TlsStream::read(std::span<char> into, Time deadline) {
  for (;;) {
    if (is_gone_) co_return egress::taken_away;
    ERR_clear_error();
    std::size_t size = 0;
    const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &size);
    if (result == 1) {
      in_a_row_ += size;
      if (in_a_row_ < most_in_a_row) co_return static_cast<ssize_t>(size);
      in_a_row_ = 0;
      (void)co_await loop_.sleep_until(loop_.now() + std::chrono::nanoseconds(1));
      co_return is_gone_ ? egress::taken_away : static_cast<ssize_t>(size);
    }
    switch (co_await wait(result, deadline)) {
      case Next::again: break;
      case Next::over: co_return egress::ended;
      case Next::failed: co_return egress::failed;
      case Next::taken_away: co_return egress::taken_away;
    }
  }
}

Async<ssize_t> TlsStream::write(std::string_view bytes, Time deadline) {
  const auto whole = static_cast<ssize_t>(bytes.size());
  while (!bytes.empty()) {
    if (is_gone_) co_return egress::taken_away;
    ERR_clear_error();
    std::size_t size = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &size);
    if (result == 1) {
      bytes.remove_prefix(size);
      continue;
    }
    switch (co_await wait(result, deadline)) {
      case Next::again: break;
      case Next::taken_away: co_return egress::taken_away;
      case Next::over:
      case Next::failed: co_return egress::failed;
    }
  }
  co_return whole;
}

Async<ssize_t> TlsStream::finish(Time deadline) {
  for (;;) {
    if (is_gone_) co_return egress::taken_away;
    ERR_clear_error();
    const int result = SSL_shutdown(ssl_.get());
    if (result >= 0) break;  // 0: the peer has not said the same yet, which is its own business
    const Next next = co_await wait(result, deadline);
    if (next == Next::taken_away) co_return egress::taken_away;
    if (next != Next::again) co_return egress::failed;
  }
  (void)::shutdown(socket_.fd(), SHUT_WR);
  co_return egress::ended;
}

}  // namespace capgate::seal
