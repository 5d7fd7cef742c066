#include <array>
#include <utility>

#include "seal/http2_relay.h"

namespace capgate::seal {
namespace {

using std::chrono::seconds;

constexpr std::size_t read_size = 16 << 10;  // a TLS record
constexpr seconds finish_patience(5);

}  // namespace

Http2Relay::Http2Relay(Sides sides)
    : sides_(sides),
      client_(sides.client, egress::LaneName::to_origin),
      origin_(sides.origin, egress::LaneName::to_client),
      resets_counted_(sides.loop.now()) {
  const std::size_t most = sides.most_head_bytes;
  client_.session =
      Http2Session::make({Http2Session::Role::server, most, sides.buffers}, client_events_);
  origin_.session =
      Http2Session::make({Http2Session::Role::client, most, sides.buffers}, origin_events_);
}

Async<RelayEnd> Http2Relay::run() {
  if (!client_.session || !origin_.session) co_return RelayEnd::failed;
  expect_head(client_);
  expect_head(origin_);
  ++running_;  // so that none of them is the last one while others are to be started
  write_to(origin_);
  write_to(client_);
  read_from(origin_);
  read_from(client_);
  if (--running_ > 0) co_await all_left_;
  if (end_ == RelayEnd::taken_away) co_return end_;
  for (const auto& [stream, exchange] : exchanges_) record(*exchange, 0);
  if (must_stop_) end_ = RelayEnd::failed;
  if (end_ != RelayEnd::closed) co_return end_;
  if (!co_await finish(sides_.client) || !co_await finish(sides_.origin)) {
    co_return RelayEnd::taken_away;
  }
  co_return end_;
}

Async<bool> Http2Relay::finish(Stream& stream) {
  co_return co_await stream.finish(sides_.loop.now() + finish_patience) != egress::taken_away;
}

void Http2Relay::leave() {
  if (--running_ == 0) all_left_.notify();
}

void Http2Relay::expect_head(Side& side) {
  side.head_deadline = sides_.loop.now() + seconds(sides_.head_seconds);
}

void Http2Relay::note_progress(Side& side) {
  if (side.is_heard) side.head_deadline = egress::never;
}

egress::Task Http2Relay::read_from(Side& side) {
  ++running_;
  side.is_reading = true;
  std::array<char, read_size> buffer;
  while (!is_stopping_ && !side.session->is_over()) {
    const ssize_t size = co_await side.stream.read(buffer, side.head_deadline);
    if (size == egress::taken_away && !is_cancelled_) stop(RelayEnd::taken_away);
    if (is_stopping_) break;
    if (size <= 0) {
      lose(side);
      break;
    }
    sides_.requests.count(side.lane, static_cast<std::size_t>(size));
    if (!side.session->receive({buffer.data(), static_cast<std::size_t>(size)})) {
      stop(RelayEnd::failed);
      break;
    }
    settle();
  }
  side.is_reading = false;
  if (!is_stopping_ && side.is_deaf && !side.is_gone) lose(side);
  leave();
}

egress::Task Http2Relay::write_to(Side& side) {
  ++running_;
  Side& other = &side == &client_ ? origin_ : client_;
  std::string out;
  // Exchanges may be gone whose bodies its session still knows.
  while (!is_stopping_ && !side.is_gone) {
    out.clear();
    if (!side.session->gather(out)) {
      stop(RelayEnd::failed);
      break;
    }
    // What was taken from bodies opens windows of the other side.
    if (other.session->wants_to_write()) other.wake.notify();
    if (is_stopping_) break;
    if (!out.empty()) {
      const ssize_t size = co_await side.stream.write(out, egress::never);
      if (size == egress::taken_away && !is_cancelled_) stop(RelayEnd::taken_away);
      if (size < 0) {
        // Its reader hears of the end, after what the peer has said before it.
        side.is_deaf = true;
        if (!is_stopping_ && !side.is_reading) lose(side);
        break;
      }
    } else if (side.session->is_over()) {
      side.is_flushed = true;
      settle();
      break;
    } else {
      settle();
      co_await side.wake;
    }
  }
  leave();
}

egress::Task Http2Relay::judge(Exchange& exchange) {
  ++running_;
  ++judging_;
  exchange.is_judging = true;
  std::expected<Admission, Refused> verdict = co_await sides_.requests.admit(exchange.request);
  exchange.is_judging = false;
  --judging_;
  if (!is_stopping_) {
    if (verdict) {
      exchange.admission = *std::move(verdict);
      forward(exchange);
    } else if (!exchange.is_client_closed) {
      answer(exchange, verdict.error());
    }
    if (exchange.is_over()) over_.push_back(exchange.client_stream);
    settle();
  } else if (judging_ == 0 && end_ != RelayEnd::taken_away) {
    stop(end_);
  }
  leave();
}

// May be reached again from within: what a coroutine does that it wakes, or a request that is
// admitted at once.
void Http2Relay::settle() {
  is_unsettled_ = true;
  if (is_settling_) return;
  is_settling_ = true;
  while (std::exchange(is_unsettled_, false) && !is_stopping_) settle_once();
  is_settling_ = false;
}

void Http2Relay::settle_once() {
  for (const std::int32_t stream : std::exchange(arrived_, {})) {
    Exchange* exchange = of_client(stream);
    if (exchange == nullptr || exchange->is_client_closed) continue;
    exchange->as_sent = describe(exchange->request);
    if (const std::optional<Refused> refused = check_head(*exchange)) {
      answer(*exchange, *refused);
    } else {
      judge(*exchange);
    }
  }
  for (const std::int32_t stream : std::exchange(over_, {})) {
    const Exchange* exchange = of_client(stream);
    if (exchange == nullptr || !exchange->is_over()) continue;
    by_origin_.erase(exchange->origin_stream);
    exchanges_.erase(stream);
  }
  if (must_stop_) return stop(RelayEnd::failed);
  if (origin_.is_done()) part_with_origin();
  if (client_.is_gone && !exchanges_.empty()) return stop(RelayEnd::failed);
  if (client_.is_done() && !origin_.is_done()) origin_.session->terminate(NGHTTP2_NO_ERROR);
  if (client_.is_done() && origin_.is_done()) return stop(end_);
  for (Side* side : {&origin_, &client_}) {
    if (!is_stopping_ && (side->session->wants_to_write() || side->session->is_over())) {
      side->wake.notify();
    }
  }
}

// No request can be sent any more, but the client still gets what has come for it.
void Http2Relay::part_with_origin() {
  if (!std::exchange(has_said_goodbye_, true)) client_.session->say_goodbye();
  for (const auto& [stream, exchange] : exchanges_) {
    if (exchange->origin_stream == 0 || exchange->is_origin_closed) continue;
    if (!exchange->down.has_ended() && !exchange->is_settled()) end_ = RelayEnd::failed;
    note_origin_closed(*exchange, NGHTTP2_INTERNAL_ERROR);
  }
}

void Http2Relay::lose(Side& side) {
  side.is_gone = true;
  if (side.head_deadline != egress::never) end_ = RelayEnd::failed;
  settle();
}

// Whoever waits for a verdict cannot be woken, and until it comes the others are left where they
// are: they hear it if the connection is taken away.
void Http2Relay::stop(RelayEnd end) {
  is_stopping_ = true;
  end_ = end;
  if (end != RelayEnd::taken_away) {
    if (judging_ > 0 || std::exchange(is_cancelled_, true)) return;
    sides_.client.cancel();
    sides_.origin.cancel();
  }
  client_.wake.notify();
  origin_.wake.notify();
}

Async<RelayEnd> relay_http2(Sides sides) {
  Http2Relay relay(sides);
  co_return co_await relay.run();
}

}  // namespace capgate::seal
