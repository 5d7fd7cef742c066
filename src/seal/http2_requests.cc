// What the client says.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/format.h"
#include "egress/http_target.h"
#include "seal/http2_relay.h"

namespace capgate::seal {
namespace {

// Of streams that the client resets, or has reset by what it says: more than these at once and
// these per second is no use of HTTP that we know.
constexpr int most_resets = 500;
constexpr int resets_per_second = 50;

void keep_pseudo_field(Exchange& exchange, Field field) {
  Request& request = exchange.request;
  if (field.name == ":method") {
    request.method = std::move(field.value);
  } else if (field.name == ":scheme") {
    exchange.scheme = std::move(field.value);
  } else if (field.name == ":authority") {
    request.authority = std::move(field.value);
    exchange.has_authority = true;
  } else if (field.name == ":path") {
    request.target = std::move(field.value);
    request.target_is_secret = field.is_secret;
  } else {
    exchange.has_protocol = true;
  }
}

// Host is :authority's other name (RFC 9113, 8.3.1): what one says, the other must not deny.
bool settle_authority(Exchange& exchange) {
  for (const Field& field : exchange.request.fields) {
    if (field.name != "host") continue;
    if (exchange.request.authority.empty()) exchange.request.authority = field.value;
    if (field.value != exchange.request.authority) return false;
  }
  return !exchange.request.authority.empty();
}

}  // namespace

Request Http2Relay::describe(const Request& request) {
  Request out{.method = request.method, .target = request.target, .authority = request.authority};
  std::ranges::copy_if(request.fields, std::back_inserter(out.fields),
                       [](const Field& field) { return field.name.starts_with("content-"); });
  return out;
}

Exchange* Http2Relay::of_client(std::int32_t stream) {
  const auto found = exchanges_.find(stream);
  return found == exchanges_.end() ? nullptr : found->second.get();
}

void Http2Relay::ClientEvents::on_head_begin(std::int32_t stream) {
  relay_.expect_head(relay_.client_);
  std::unique_ptr<Exchange>& exchange = relay_.exchanges_[stream];
  if (!exchange) {
    exchange = std::make_unique<Exchange>();
    exchange->client_stream = stream;
    exchange->heads = BufferBudget::Room(relay_.sides_.buffers);
    exchange->up.from = relay_.client_.session.get();
    exchange->up.from_stream = stream;
  }
  exchange->request_bytes = 0;
}

bool Http2Relay::ClientEvents::on_field(std::int32_t stream, Field field) {
  Exchange* exchange = relay_.of_client(stream);
  if (exchange == nullptr) return true;
  const std::size_t most = relay_.sides_.most_head_bytes;
  exchange->request_bytes += counted_size(field);
  if (!exchange->heads.grow(counted_size(field), BufferBudget::Use::heads)) return false;
  if (exchange->request_bytes > most) return exchange->request_bytes <= much_too_large * most;
  if (exchange->is_head_whole) {
    exchange->up.trailers.push_back(std::move(field));
  } else if (field.name.starts_with(':')) {
    keep_pseudo_field(*exchange, std::move(field));
  } else {
    exchange->request.fields.push_back(std::move(field));
  }
  return true;
}

void Http2Relay::ClientEvents::on_head(std::int32_t stream, bool is_end) {
  relay_.note_progress(relay_.client_);
  Exchange* exchange = relay_.of_client(stream);
  if (exchange == nullptr) return;
  if (exchange->is_head_whole) {
    if (exchange->request_bytes > relay_.sides_.most_head_bytes) {
      relay_.client_.session->reset(stream, NGHTTP2_ENHANCE_YOUR_CALM);
    } else {
      on_end(stream);
    }
    return;
  }
  exchange->is_head_whole = true;
  exchange->is_request_whole = is_end;
  relay_.arrived_.push_back(stream);
}

void Http2Relay::ClientEvents::on_data(std::int32_t stream, std::string_view bytes) {
  Exchange* exchange = relay_.of_client(stream);
  if (exchange == nullptr || exchange->is_unwanted()) {
    relay_.client_.session->discard(stream, bytes.size());
    return;
  }
  exchange->up.came(bytes.size());
  if (exchange->is_admitted) {
    (void)relay_.pass_request_bytes(*exchange, bytes);
  } else {
    exchange->up.add(bytes);  // as it came, until the head has been judged
  }
}

void Http2Relay::ClientEvents::on_end(std::int32_t stream) {
  Exchange* exchange = relay_.of_client(stream);
  if (exchange == nullptr) return;
  exchange->is_request_whole = true;
  if (exchange->is_admitted && !exchange->is_unwanted()) (void)relay_.end_request(*exchange);
}

void Http2Relay::ClientEvents::on_malformed(std::int32_t stream) {
  relay_.note_progress(relay_.client_);
  relay_.count_reset();
  Exchange* exchange = relay_.of_client(stream);
  if (exchange == nullptr || exchange->is_head_whole) return;
  if (std::exchange(exchange->is_recorded, true)) return;
  (void)relay_.sides_.requests.refuse(Http2Relay::describe(exchange->request), "malformed",
                                      "the head of the request is no HTTP/2");
}

void Http2Relay::ClientEvents::on_reset() { relay_.count_reset(); }

void Http2Relay::count_reset() {
  const auto passed = std::chrono::floor<std::chrono::seconds>(sides_.loop.now() - resets_counted_);
  resets_counted_ += passed;
  const auto regained = std::min<std::int64_t>(passed.count(), most_resets) * resets_per_second;
  resets_seen_ = static_cast<int>(std::max<std::int64_t>(resets_seen_ - regained, 0)) + 1;
  if (resets_seen_ > most_resets) client_.session->terminate(NGHTTP2_ENHANCE_YOUR_CALM);
}

void Http2Relay::ClientEvents::on_closed(std::int32_t stream, std::uint32_t code) {
  Exchange* exchange = relay_.of_client(stream);
  if (exchange == nullptr) return;
  exchange->is_client_closed = true;
  exchange->down.drop();
  const bool is_whole = exchange->is_request_whole && exchange->is_end_sent;
  if (code != NGHTTP2_NO_ERROR || !is_whole || exchange->is_unwanted()) {
    exchange->up.drop();
    relay_.cut_origin(*exchange, code);
  }
  relay_.over_.push_back(stream);
}

// The answer is complete, so the rest of the request is of no use to anybody.
void Http2Relay::ClientEvents::on_end_sent(std::int32_t stream) {
  Exchange* exchange = relay_.of_client(stream);
  if (exchange == nullptr) return;
  exchange->is_end_sent = true;
  if (exchange->is_request_whole || !exchange->is_unwanted()) return;
  relay_.client_.session->reset(stream, NGHTTP2_NO_ERROR);
}

void Http2Relay::ClientEvents::on_settings() {
  relay_.client_.is_heard = true;
  relay_.note_progress(relay_.client_);
}

void Http2Relay::ClientEvents::on_goaway_sent(std::uint32_t code) {
  if (code != NGHTTP2_NO_ERROR) relay_.end_ = RelayEnd::failed;
}

std::optional<Refused> Http2Relay::check_head(Exchange& exchange) {
  const auto refuse = [&](int status, std::string_view text) {
    exchange.is_recorded = true;
    Refused refused = sides_.requests.refuse(exchange.as_sent, "malformed", text);
    refused.status = status;
    return refused;
  };
  if (exchange.request_bytes > sides_.most_head_bytes) {
    return refuse(
        431, format("the head of the request is larger than {} bytes", sides_.most_head_bytes));
  }
  if (exchange.request.method == "CONNECT" || exchange.has_protocol) {
    return refuse(405, "CONNECT leads nowhere from here");
  }
  if (!egress::parse_target(exchange.request.method, exchange.request.target)) {
    return refuse(400, "the path of the request can be read in more than one way");
  }
  if (exchange.scheme != "https") return refuse(400, "the scheme of the request is not https");
  if (!settle_authority(exchange)) {
    return refuse(400, "the request must name one authority, and Host must be the same");
  }
  exchange.as_sent.authority = exchange.request.authority;
  return std::nullopt;
}

// The request has been admitted: values stand in it.
void Http2Relay::forward(Exchange& exchange) {
  exchange.is_admitted = true;
  if (exchange.is_client_closed) return record(exchange, 0);
  if (origin_.is_done() || has_said_goodbye_) {
    client_.session->reset(exchange.client_stream, NGHTTP2_REFUSED_STREAM);
    return record(exchange, 0);
  }
  const Keyring& keys = sides_.requests.keys();
  if (!keys.is_empty()) {
    exchange.swap.emplace(keys.request_body(exchange.as_sent));
    exchange.scrub.emplace(keys.response_body());
    if (exchange.swap->may_change_length()) {
      std::erase_if(exchange.request.fields,
                    [](const Field& field) { return field.name == "content-length"; });
    }
  }
  if (!pass_held_request(exchange)) return;
  const bool has_body =
      !exchange.up.has_ended() || !exchange.up.left().empty() || !exchange.up.trailers.empty();
  exchange.origin_stream = origin_.session->request(exchange.request, exchange.has_authority,
                                                    has_body ? &exchange.up : nullptr);
  if (exchange.origin_stream == 0) {
    client_.session->reset(exchange.client_stream, NGHTTP2_REFUSED_STREAM);
    if (!std::exchange(has_said_goodbye_, true)) client_.session->say_goodbye();
    return record(exchange, 0);
  }
  by_origin_[exchange.origin_stream] = &exchange;
  exchange.up.to = origin_.session.get();
  exchange.up.to_stream = exchange.origin_stream;
  exchange.down.from = origin_.session.get();
  exchange.down.from_stream = exchange.origin_stream;
}

// What came before the verdict. False: it has been refused now.
bool Http2Relay::pass_held_request(Exchange& exchange) {
  const std::string held = exchange.up.take_all();
  if (!held.empty() && !pass_request_bytes(exchange, held)) return false;
  return !exchange.is_request_whole || end_request(exchange);
}

bool Http2Relay::pass_request_bytes(Exchange& exchange, std::string_view bytes) {
  if (!exchange.swap) {
    exchange.up.add(bytes);
    return true;
  }
  const std::expected<std::string_view, Misuse> swapped = exchange.swap->pass(bytes);
  if (!swapped) {
    deny(exchange, swapped.error());
    return false;
  }
  exchange.up.add(*swapped);
  return true;
}

bool Http2Relay::end_request(Exchange& exchange) {
  if (exchange.swap) {
    const std::expected<std::string_view, Misuse> rest = exchange.swap->rest();
    if (!rest) {
      deny(exchange, rest.error());
      return false;
    }
    exchange.up.add(*rest);
  }
  const auto checked = sides_.requests.keys().check_trailers(exchange.up.trailers);
  if (!checked) {
    deny(exchange, checked.error());
    return false;
  }
  exchange.up.end();
  return true;
}

void Http2Relay::deny(Exchange& exchange, const Misuse& misuse) {
  exchange.is_recorded = true;
  const Refused refused = sides_.requests.refuse(exchange.as_sent, misuse.reason, misuse.text);
  if (exchange.is_responding) {
    exchange.up.drop();
    client_.session->reset(exchange.client_stream, NGHTTP2_CANCEL);
    cut_origin(exchange, NGHTTP2_CANCEL);
  } else {
    answer(exchange, refused);
  }
}

void Http2Relay::answer(Exchange& exchange, const Refused& refused) {
  exchange.is_answered = true;
  exchange.up.drop();
  exchange.down.drop();
  cut_origin(exchange, NGHTTP2_CANCEL);
  if (exchange.is_client_closed) return;
  Response response{.status = refused.status};
  response.fields.push_back({.name = "content-type", .value = "text/plain; charset=utf-8"});
  const std::string& text = refused.text;
  response.fields.push_back({.name = "content-length", .value = format("{}", text.size())});
  if (exchange.request.method == "HEAD") {
    client_.session->respond(exchange.client_stream, response, nullptr);
    return;
  }
  exchange.down.from = nullptr;
  exchange.down.to = client_.session.get();
  exchange.down.to_stream = exchange.client_stream;
  exchange.down.add(text);
  exchange.down.end();
  client_.session->respond(exchange.client_stream, response, &exchange.down);
}

}  // namespace capgate::seal
