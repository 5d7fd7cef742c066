// A kept connection to an origin, until the origin has answered on it for the first time: it may
// have been closed in just this moment, and the client must not notice.
//
//   ReusedOrigin origin(kept, [&] { return is_silent(...); }, [&] { return connect_again(...); });
//   relay_http1({.origin = origin, ...});
//
// What may be sent twice is (begin_request): if the connection ends before the first byte of an
// answer, another one is made and the request goes there. Whatever else the client begins with gets
// another connection at once: a request that changes something is sent once, on a connection where
// nothing but its own failure can lose it (RFC 9110, 9.2.2). From the first answer on, this is the
// stream below and nothing else.
#pragma once

#include <functional>
#include <string>

#include "seal/signal.h"
#include "seal/stream.h"

namespace capgate::seal {

class ReusedOrigin final : public Stream {
 public:
  // Makes another connection in the place of `kept`, which may be gone then. Null: there is none.
  using Another = std::function<Async<Stream*>()>;
  // Whether nothing has come on `kept`.
  using IsSilent = std::function<bool()>;

  ReusedOrigin(Stream& kept, IsSilent is_silent, Another another)
      : stream_(&kept), is_silent_(std::move(is_silent)), another_(std::move(another)) {}
  ReusedOrigin(const ReusedOrigin&) = delete;
  ReusedOrigin& operator=(const ReusedOrigin&) = delete;
  ReusedOrigin(ReusedOrigin&&) = delete;
  ReusedOrigin& operator=(ReusedOrigin&&) = delete;
  ~ReusedOrigin() override;

  void begin_request(Repeats repeats) override { repeats_ = repeats; }
  Async<ssize_t> read(std::span<char> into, Time deadline) override;
  Async<ssize_t> write(std::string_view bytes, Time deadline) override;
  Async<ssize_t> finish(Time deadline) override { return stream_->finish(deadline); }
  void cancel() override;
  // The sockets are about to go. Whoever waits here is woken, so this may be gone afterwards.
  void leave();

 private:
  enum class State : unsigned char {
    unused,     // nothing was sent
    asked,      // all of a request that may be sent twice
    replacing,  // another connection is being made
    settled,    // nothing special any more
    broken,     // there is no other connection
  };
  [[nodiscard]] Async<bool> replace();
  void settle(State state);

  Stream* stream_;
  IsSilent is_silent_;
  Another another_;
  State state_ = State::unused;
  Repeats repeats_ = Repeats::never;
  std::string asked_;
  bool is_dead_ = false;     // the kept one: it has ended, or has said what nobody asked for
  bool is_writing_ = false;  // on the kept one
  bool is_over_ = false;
  Signal changed_;  // for the reader
};

}  // namespace capgate::seal
