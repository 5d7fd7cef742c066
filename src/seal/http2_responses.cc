// What the origin says.
#include <charconv>
#include <utility>

#include "seal/http2_relay.h"

namespace capgate::seal {
namespace {

// They are not part of any window, so their number is what bounds them.
constexpr int most_informed = 64;

int read_status(std::string_view text) {
  int status = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), status);
  return status;
}

// What one side says to a stream is said to the other; codes that nobody has defined are not.
std::uint32_t known_code(std::uint32_t code) {
  return code <= NGHTTP2_HTTP_1_1_REQUIRED ? code : std::uint32_t{NGHTTP2_INTERNAL_ERROR};
}

// The stream ended without an error, but before its message did.
std::uint32_t code_of_cut(std::uint32_t code) {
  return code == NGHTTP2_NO_ERROR ? std::uint32_t{NGHTTP2_INTERNAL_ERROR} : known_code(code);
}

}  // namespace

Exchange* Http2Relay::of_origin(std::int32_t stream) {
  const auto found = by_origin_.find(stream);
  return found == by_origin_.end() ? nullptr : found->second;
}

void Http2Relay::OriginEvents::on_head_begin(std::int32_t stream) {
  relay_.expect_head(relay_.origin_);
  Exchange* exchange = relay_.of_origin(stream);
  if (exchange == nullptr) return;
  exchange->response = {};
  exchange->is_status_read = false;
  exchange->response_bytes = 0;
}

bool Http2Relay::OriginEvents::on_field(std::int32_t stream, Field field) {
  Exchange* exchange = relay_.of_origin(stream);
  if (exchange == nullptr) return true;
  const std::size_t most = relay_.sides_.most_head_bytes;
  exchange->response_bytes += counted_size(field);
  if (!exchange->heads.grow(counted_size(field), BufferBudget::Use::heads)) return false;
  if (exchange->response_bytes > most) return exchange->response_bytes <= much_too_large * most;
  if (field.name == ":status") {
    exchange->is_status_read = true;
    exchange->response.status = read_status(field.value);
  } else if (exchange->is_status_read) {
    exchange->response.fields.push_back(std::move(field));
  } else {
    exchange->down.trailers.push_back(std::move(field));
  }
  return true;
}

void Http2Relay::OriginEvents::on_head(std::int32_t stream, bool is_end) {
  relay_.note_progress(relay_.origin_);
  Exchange* exchange = relay_.of_origin(stream);
  if (exchange == nullptr || exchange->is_settled()) return;
  const bool is_large = exchange->response_bytes > relay_.sides_.most_head_bytes;
  if (is_large && exchange->is_responding) {
    relay_.client_.session->reset(exchange->client_stream, NGHTTP2_INTERNAL_ERROR);
    relay_.cut_origin(*exchange, NGHTTP2_CANCEL);
  } else if (is_large) {
    relay_.refuse_response(*exchange, "malformed", "the head of the answer is too large");
  } else if (exchange->is_status_read) {
    relay_.pass_response(*exchange, is_end);
  } else {
    relay_.end_response(*exchange);
  }
}

void Http2Relay::pass_response(Exchange& exchange, bool is_end) {
  Response& response = exchange.response;
  const Keyring& keys = sides_.requests.keys();
  if (response.status < 200) {
    if (++exchange.informed > most_informed) {
      refuse_response(exchange, "malformed", "the origin announces an answer without end");
      return;
    }
    tell_scrubbed(keys.scrub(response));
    client_.session->inform(exchange.client_stream, response);
    return;
  }
  if (!keys.is_readable(response)) {
    refuse_response(exchange, "encoded-response",
                    "the origin's answer is encoded, so it cannot be searched for the secret");
    return;
  }
  record(exchange, response.status);
  tell_scrubbed(keys.scrub(response));
  exchange.is_responding = true;
  exchange.down.to = client_.session.get();
  exchange.down.to_stream = exchange.client_stream;
  client_.session->respond(exchange.client_stream, response, is_end ? nullptr : &exchange.down);
  if (is_end) exchange.down.end();
}

void Http2Relay::OriginEvents::on_data(std::int32_t stream, std::string_view bytes) {
  Exchange* exchange = relay_.of_origin(stream);
  if (exchange == nullptr || exchange->is_settled()) {
    relay_.origin_.session->discard(stream, bytes.size());
    return;
  }
  exchange->down.came(bytes.size());
  if (exchange->scrub) {
    const std::size_t before = exchange->scrub->found();
    exchange->down.add(exchange->scrub->pass(bytes));
    // At once: the client may leave before the answer ends.
    relay_.tell_scrubbed(exchange->scrub->found() - before);
  } else {
    exchange->down.add(bytes);
  }
}

void Http2Relay::OriginEvents::on_end(std::int32_t stream) {
  Exchange* exchange = relay_.of_origin(stream);
  if (exchange != nullptr && !exchange->is_settled()) relay_.end_response(*exchange);
}

void Http2Relay::end_response(Exchange& exchange) {
  if (exchange.scrub) {
    const std::size_t before = exchange.scrub->found();
    exchange.down.add(exchange.scrub->rest());
    tell_scrubbed(exchange.scrub->found() - before);
  }
  if (!exchange.down.trailers.empty()) {
    tell_scrubbed(sides_.requests.keys().scrub(exchange.down.trailers));
  }
  exchange.down.end();
}

void Http2Relay::OriginEvents::on_malformed(std::int32_t stream) {
  relay_.note_progress(relay_.origin_);
  Exchange* exchange = relay_.of_origin(stream);
  if (exchange != nullptr) exchange->is_malformed = true;
}

void Http2Relay::refuse_response(Exchange& exchange, std::string_view reason,
                                 std::string_view text) {
  exchange.is_recorded = true;
  Refused refused = sides_.requests.refuse(exchange.as_sent, reason, text);
  refused.status = 502;
  answer(exchange, refused);
}

void Http2Relay::OriginEvents::on_closed(std::int32_t stream, std::uint32_t code) {
  if (Exchange* exchange = relay_.of_origin(stream)) relay_.note_origin_closed(*exchange, code);
}

void Http2Relay::OriginEvents::on_head_sent(std::int32_t stream) {
  if (Exchange* exchange = relay_.of_origin(stream)) wipe_secrets(exchange->request);
}

// It was to be sent after the origin's GOAWAY: the client may try again elsewhere.
void Http2Relay::OriginEvents::on_head_not_sent(std::int32_t stream) {
  Exchange* exchange = relay_.of_origin(stream);
  if (exchange != nullptr) relay_.note_origin_closed(*exchange, NGHTTP2_REFUSED_STREAM);
}

void Http2Relay::OriginEvents::on_settings() {
  Side& origin = relay_.origin_;
  origin.is_heard = true;
  relay_.note_progress(origin);
  const std::uint32_t most = std::min(most_streams, origin.session->peer_stream_limit());
  if (most == relay_.stream_limit_) return;
  relay_.stream_limit_ = most;
  relay_.client_.session->limit_streams(most);
}

void Http2Relay::OriginEvents::on_goaway() {
  if (std::exchange(relay_.has_said_goodbye_, true)) return;
  relay_.client_.session->say_goodbye();
}

void Http2Relay::OriginEvents::on_goaway_sent(std::uint32_t code) {
  if (code != NGHTTP2_NO_ERROR) relay_.end_ = RelayEnd::failed;
}

void Http2Relay::cut_origin(Exchange& exchange, std::uint32_t code) {
  if (exchange.origin_stream == 0 || exchange.is_origin_closed) return;
  origin_.session->reset(exchange.origin_stream, code == NGHTTP2_NO_ERROR
                                                     ? std::uint32_t{NGHTTP2_CANCEL}
                                                     : known_code(code));
}

void Http2Relay::note_origin_closed(Exchange& exchange, std::uint32_t code) {
  if (std::exchange(exchange.is_origin_closed, true)) return;
  wipe_secrets(exchange.request);
  exchange.up.drop();
  over_.push_back(exchange.client_stream);
  if (!exchange.is_settled() && !exchange.is_responding && exchange.is_malformed) {
    return refuse_response(exchange, "malformed", "the answer of the origin is no HTTP/2");
  }
  record(exchange, 0);
  if (exchange.is_settled()) return;
  if (!exchange.down.has_ended()) {
    client_.session->reset(exchange.client_stream, code_of_cut(code));
  } else if (!exchange.is_request_whole && exchange.is_end_sent) {
    client_.session->reset(exchange.client_stream, NGHTTP2_NO_ERROR);
  }
}

// Once for each request that was admitted.
void Http2Relay::record(Exchange& exchange, int status) {
  if (!exchange.is_admitted || std::exchange(exchange.is_recorded, true)) return;
  if (exchange.swap) exchange.admission.add(exchange.swap->used());
  if (!sides_.requests.record(exchange.as_sent, exchange.admission, status)) must_stop_ = true;
}

void Http2Relay::tell_scrubbed(std::size_t count) {
  if (count > 0) sides_.requests.tell_scrubbed(count);
}

}  // namespace capgate::seal
