// TLS over a socket of the loop, as a Stream: either side of a terminated connection.
//
//   TlsStream client(loop, tunnel.client(), std::move(ssl), hello_bytes);
//   if (co_await client.handshake(deadline) != TlsStream::Shaken::done) ...
//   co_await client.read(...), client.write(...)
//
// The socket stays the tunnel's. `first_bytes` were read from the socket before TLS took over; they
// come first. Reads are as large as a record, writes are whole records.
//
// TLS itself may have to write before it can read on (an answer to a change of keys), and the other
// way round (half of a message about keys has come): the peer decides when. A socket has one
// waiting reader and one waiting writer, so a second one waits for the first.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "egress/loop.h"
#include "seal/signal.h"
#include "seal/stream.h"

namespace capgate::seal {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPtr = std::unique_ptr<SSL, FreeSsl>;

class TlsStream final : public Stream {
 public:
  TlsStream(egress::Loop& loop, egress::Socket& socket, SslPtr ssl, std::string first_bytes = {});

  enum class Shaken : unsigned char { done, failed, taken_away };
  // `ssl` says which side we are (SSL_set_accept_state, SSL_set_connect_state).
  [[nodiscard]] Async<Shaken> handshake(Time deadline);

  [[nodiscard]] SSL& ssl() { return *ssl_; }
  // What ALPN has led to; empty: nothing.
  [[nodiscard]] std::string_view protocol() const;

  Async<ssize_t> read(std::span<char> into, Time deadline) override;
  Async<ssize_t> write(std::string_view bytes, Time deadline) override;
  Async<ssize_t> finish(Time deadline) override;
  void cancel() override {
    if (!is_gone_) loop_.cancel(socket_);
  }
  // The socket is about to go: from now on every call is taken_away.
  void leave() { is_gone_ = true; }

  // What OpenSSL reads and writes through.
  struct Wire {
    egress::Socket& socket;
    std::string first_bytes;
    std::size_t taken = 0;
  };

 private:
  // Whether the call is to be repeated once the socket can go on; anything else ends it.
  enum class Next : unsigned char { again, over, failed, taken_away };
  [[nodiscard]] Async<Next> wait(int result, Time deadline);
  enum class Event : unsigned char { readable, writable };
  [[nodiscard]] Async<egress::Woken> wait_for(Event event, Time deadline);

  egress::Loop& loop_;
  egress::Socket& socket_;
  bool is_gone_ = false;
  std::array<bool, 2> is_awaited_{};  // by Event
  bool has_second_ = false;           // both coroutines wait for the same
  Signal first_woken_;
  egress::Woken woken_ = egress::Woken::ready;  // how the first one was
  std::size_t in_a_row_ = 0;                    // bytes that were read without a wait
  Wire wire_;
  SslPtr ssl_;
};

}  // namespace capgate::seal
