#include <algorithm>
#include <chrono>
#include <utility>

#include "base/format.h"
#include "seal/http1_relay.h"

namespace capgate::seal {
namespace {

using egress::failed;
using egress::LaneName;
using egress::never;
using egress::taken_away;

constexpr std::size_t read_size = 16384;
// A client that does not stop sending when it was told that nothing more comes.
constexpr std::size_t most_drained = std::size_t{1024} * 1024;
constexpr std::chrono::seconds longest_parting(3);

std::string_view reason_phrase(int status) {
  switch (status) {
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    default: return "Refused";
  }
}

}  // namespace

std::string write_refusal(int status, std::string_view text, std::string_view method, After after) {
  return format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{}\r\n{}",
      status, reason_phrase(status), text.size(),
      after == After::ends ? "Connection: close\r\n" : "", method == "HEAD" ? "" : text);
}

Inbox::Inbox(Stream& stream) : stream_(stream), buffer_(read_size) {}

void Inbox::drop(std::size_t size) {
  begin_ += size;
  if (begin_ == end_) begin_ = end_ = 0;
}

Async<ssize_t> Inbox::fill(Time deadline) {
  if (begin_ > 0 && buffer_.size() - end_ < read_size / 2) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const ssize_t size = co_await stream_.read(std::span(buffer_).subspan(end_), deadline);
  if (size > 0) end_ += static_cast<std::size_t>(size);
  co_return size;
}

Http1Relay::Http1Relay(const Sides& sides)
    : sides_(sides), from_client_(sides.client), from_origin_(sides.origin) {}

egress::Task Http1Relay::pass_answers_beside(Http1Relay& relay) {
  (void)co_await relay.pass_answers();
  relay.answers_over_.notify();
}

Async<RelayEnd> Http1Relay::run() {
  pass_answers_beside(*this);
  (void)co_await pass_requests();
  co_await answers_over_;
  co_return co_await part();
}

// What was decided meanwhile by the other coroutine holds before and after every wait.
Async<ssize_t> Http1Relay::fill(Inbox& inbox, Time deadline) {
  if (is_over_) co_return taken_away;
  const ssize_t size = co_await inbox.fill(deadline);
  if (size == taken_away) stop(RelayEnd::taken_away);
  co_return is_over_ ? taken_away : size;
}

Async<ssize_t> Http1Relay::send(LaneName lane, std::string_view bytes) {
  if (is_over_) co_return taken_away;
  Stream& stream = lane == LaneName::to_origin ? sides_.origin : sides_.client;
  const ssize_t size = co_await stream.write(bytes, never);
  // Some of a request may have left, and the rest never will.
  if (size < 0 && lane == LaneName::to_origin) is_origin_free_ = false;
  if (size == taken_away) stop(RelayEnd::taken_away);
  if (is_over_) co_return taken_away;
  if (size > 0) sides_.requests.count(lane, static_cast<std::size_t>(size));
  co_return size;
}

// A head, or trailers. Its time runs from its first byte.
Async<Http1Relay::Block> Http1Relay::read_block(Inbox& inbox) {
  using enum Block::Came;
  Time deadline = never;
  std::size_t searched = 0;
  for (;;) {
    const std::string_view bytes = inbox.bytes();
    const std::size_t size = find_head_end(bytes.substr(0, sides_.most_head_bytes), searched);
    if (size > 0) co_return Block{.came = whole, .size = size};
    if (bytes.size() >= sides_.most_head_bytes) co_return Block{.came = too_long};
    searched = bytes.size();
    if (searched > 0 && deadline == never) {
      deadline = sides_.loop.now() + std::chrono::seconds(sides_.head_seconds);
    }
    const ssize_t read = co_await fill(inbox, deadline);
    if (read == taken_away) co_return Block{.came = over};
    if (read <= 0) co_return Block{.came = searched == 0 ? nothing : cut};
  }
}

// The first one decides. Who waits is woken, sees that it is over, and ends.
void Http1Relay::stop(RelayEnd end) {
  if (is_over_) return;
  is_over_ = true;
  end_ = end;
  // Where the connection was taken away, whoever took it wakes them all.
  if (end != RelayEnd::taken_away) {
    sides_.client.cancel();
    sides_.origin.cancel();
  }
  answered_.notify();
}

void Http1Relay::stop_refusing(const Refused& refused, int status) {
  if (is_over_) return;
  farewell_ = write_refusal(status, refused.text, exchange_.as_sent.method, After::ends);
  exchange_.is_recorded = true;
  is_client_sending_ = true;
  stop(RelayEnd::denied);
}

Async<bool> Http1Relay::finish(LaneName lane) {
  bool& is_finished = lane == LaneName::to_origin ? is_origin_finished_ : is_client_finished_;
  if (std::exchange(is_finished, true)) co_return true;
  Stream& stream = lane == LaneName::to_origin ? sides_.origin : sides_.client;
  co_return co_await stream.finish(sides_.loop.now() + longest_parting) != taken_away;
}

// What it still sends would be answered by a reset, which discards what it has not read yet.
Async<bool> Http1Relay::drain_client() {
  const Time deadline = sides_.loop.now() + longest_parting;
  std::size_t drained = 0;
  for (;;) {
    from_client_.drop(from_client_.bytes().size());
    const ssize_t size = co_await from_client_.fill(deadline);
    if (size == taken_away) co_return false;
    if (size <= 0) co_return true;
    drained += static_cast<std::size_t>(size);
    if (drained > most_drained) co_return true;
  }
}

bool Http1Relay::is_origin_kept() const {
  return sides_.keeps_origin && end_ == RelayEnd::closed && is_origin_free_ && !is_origin_tied_ &&
         !exchange_.is_open && !is_upgraded_ && !is_origin_finished_ && from_origin_.is_empty();
}

// Both coroutines have ended: nobody but this one touches the streams.
Async<RelayEnd> Http1Relay::part() {
  if (end_ == RelayEnd::taken_away) co_return end_;
  if (exchange_.is_open && !exchange_.is_recorded) {
    (void)sides_.requests.record(exchange_.as_sent, exchange_.admission, 0);
  }
  if (!farewell_.empty()) {
    // In the middle of an answer nothing else can be said.
    if (exchange_.is_answering) co_return RelayEnd::failed;
    const ssize_t size =
        co_await sides_.client.write(farewell_, sides_.loop.now() + longest_parting);
    if (size == taken_away) co_return RelayEnd::taken_away;
    if (size == failed) co_return end_;
    sides_.requests.count(LaneName::to_client, farewell_.size());
  }
  if (end_ == RelayEnd::failed) co_return end_;
  if (!co_await finish(LaneName::to_client)) co_return RelayEnd::taken_away;
  if (is_origin_kept()) {
    if (is_client_sending_ && !co_await drain_client()) co_return RelayEnd::taken_away;
    co_return RelayEnd::origin_free;
  }
  // A request that was broken off must not look whole to the origin.
  const bool is_request_cut = exchange_.is_open && !exchange_.is_body_sent;
  if (!is_request_cut && !co_await finish(LaneName::to_origin)) co_return RelayEnd::taken_away;
  if (is_client_sending_ && !co_await drain_client()) co_return RelayEnd::taken_away;
  co_return end_;
}

Async<RelayEnd> relay_http1(Sides sides) {
  Http1Relay relay(sides);
  co_return co_await relay.run();
}

}  // namespace capgate::seal
