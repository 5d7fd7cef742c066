// From the client to the origin.
#include <algorithm>

#include "base/format.h"
#include "egress/http_text.h"
#include "seal/http1_relay.h"
#include "secrets/secret.h"

namespace capgate::seal {
namespace {

using egress::ended;
using egress::failed;
using egress::LaneName;
using egress::never;
using egress::taken_away;

// Up to here a body whose length may change is kept until it is whole, and a refused one is read.
constexpr std::size_t most_buffered = std::size_t{64} * 1024;
constexpr std::size_t out_size = std::size_t{20} * 1024;

// Like append, but what was there is nowhere else afterwards.
void append_secretly(std::string& out, std::string_view text) {
  if (out.capacity() - out.size() < text.size()) {
    std::string larger;
    larger.reserve(std::max({out.capacity() * 2, out.size() + text.size(), out_size}));
    larger.append(out);
    secrets::wipe(out);
    out = std::move(larger);
  }
  out.append(text);
}

// Wipes and empties `data`.
void append_chunk_secretly(std::string& out, std::string& data) {
  if (data.empty()) return;
  std::string chunk;
  chunk.reserve(data.size() + longest_chunk_frame);
  append_chunk(chunk, data);
  append_secretly(out, chunk);
  secrets::wipe(chunk);
  secrets::wipe(data);
  data.clear();
}

Field* find_length(Request& request) {
  const auto found = std::ranges::find_if(
      request.fields, [](const Field& field) { return is_field(field, "content-length"); });
  return found == request.fields.end() ? nullptr : &*found;
}

// Takes "Connection: close" out, which is for the next hop alone. False: nothing of the kind, or
// more than that.
bool take_close(Request& request) {
  const auto is_connection = [](const Field& field) { return is_field(field, "connection"); };
  const auto found = std::ranges::find_if(request.fields, is_connection);
  if (found == request.fields.end() || !egress::equal_in_any_case(found->value, "close") ||
      std::ranges::count_if(request.fields, is_connection) != 1) {
    return false;
  }
  request.fields.erase(found);
  return true;
}

// Safe methods: what the origin does for them, it may do twice.
Repeats repeats_of(const RequestHead& head) {
  const std::string& method = head.request.method;
  const bool is_safe = method == "GET" || method == "HEAD" || method == "OPTIONS";
  return is_safe && head.body.kind == Framing::Kind::none ? Repeats::freely : Repeats::never;
}

// Authentication of the connection, begun by the client.
bool ties_connection(const Request& request) {
  const Field* field = find_field(request.fields, "authorization");
  if (field == nullptr) return false;
  const std::string_view scheme = std::string_view(field->value).substr(0, field->value.find(' '));
  return egress::equal_in_any_case(scheme, "ntlm") ||
         egress::equal_in_any_case(scheme, "negotiate");
}

}  // namespace

void Http1Relay::refuse_malformed(Flaw flaw) {
  const Refused refused = sides_.requests.refuse(
      exchange_.as_sent, "malformed", format("the request {}, so it is not strict HTTP/1.1", flaw));
  stop_refusing(refused, 400);
}

void Http1Relay::refuse_misuse(const Misuse& misuse) {
  const Refused refused = sides_.requests.refuse(exchange_.as_sent, misuse.reason, misuse.text);
  stop_refusing(refused, refused.status);
}

Async<bool> Http1Relay::pass_requests() {
  for (;;) {
    if (!co_await pass_request()) co_return false;
    // After an upgrade the client's bytes are no requests; until then it is not known.
    while (exchange_.is_open && exchange_.wants_websocket && !is_over_) co_await answered_;
    if (is_upgraded_) co_return co_await pass_raw_to_origin();
  }
}

Async<bool> Http1Relay::pass_request() {
  const Block block = co_await read_block(from_client_);
  if (block.came == Block::Came::over) co_return false;
  if (block.came == Block::Came::nothing || block.came == Block::Came::cut) {
    // Who leaves while an answer is on its way does not want it any more: so it is with most
    // proxies, and no client ends its side only.
    const bool is_clean = block.came == Block::Came::nothing && !exchange_.is_open;
    stop(is_clean ? RelayEnd::closed : RelayEnd::failed);
    co_return false;
  }
  while (exchange_.is_open && !is_over_) co_await answered_;
  if (is_over_) co_return false;
  exchange_ = {};
  if (block.came == Block::Came::too_long) {
    refuse_malformed("has a head that is too long");
    co_return false;
  }
  auto head = read_request_head(from_client_.bytes().substr(0, block.size));
  if (!head) {
    refuse_malformed(head.error());
    co_return false;
  }
  from_client_.drop(block.size);
  exchange_.as_sent = head->request;
  if (head->upgrade == RequestHead::Upgrade::other) {
    const Refused refused = sides_.requests.refuse(exchange_.as_sent, "not-spoken-here",
                                                   "an upgrade to something that is no WebSocket");
    stop_refusing(refused, refused.status);
    co_return false;
  }
  if (sides_.keeps_origin && head->upgrade == RequestHead::Upgrade::none) {
    exchange_.is_last = take_close(head->request);
  }
  auto admitted = co_await sides_.requests.admit(head->request);
  if (is_over_) {
    wipe_secrets(head->request);
    co_return false;
  }
  if (!admitted) co_return co_await refuse_request(*head, admitted.error());
  exchange_.admission = *std::move(admitted);
  co_return co_await pass_admitted(*std::move(head));
}

// It goes on if the body is known to be small: it is read, and the next request is found after it.
Async<bool> Http1Relay::refuse_request(const RequestHead& head, const Refused& refused) {
  const bool is_small = head.body.kind == Framing::Kind::none ||
                        (head.body.kind == Framing::Kind::length &&
                         head.body.length <= most_buffered && !head.expects_continue);
  if (!is_small || head.is_last) {
    stop_refusing(refused, refused.status);
    co_return false;
  }
  const std::string answer =
      write_refusal(refused.status, refused.text, exchange_.as_sent.method, After::goes_on);
  is_refusing_ = true;
  const ssize_t size = co_await send(LaneName::to_client, answer);
  is_refusing_ = false;
  if (size == taken_away) co_return false;
  if (size == failed || is_origin_gone_) {
    is_client_sending_ = is_origin_gone_;
    stop(size == failed ? RelayEnd::failed : RelayEnd::closed);
    co_return false;
  }
  Unframer unframer(head.body);
  while (!unframer.is_done()) {
    from_client_.drop(unframer.next(from_client_.bytes()).size);
    if (unframer.is_done()) break;
    const ssize_t more = co_await fill(from_client_, never);
    if (more == taken_away) co_return false;
    if (more <= 0) {
      stop(RelayEnd::failed);
      co_return false;
    }
  }
  co_return true;
}

Async<bool> Http1Relay::pass_admitted(RequestHead head) {
  if (!is_sendable(head.request)) {
    wipe_secrets(head.request);
    const Refused refused = sides_.requests.refuse(
        exchange_.as_sent, "other-place", "the value cannot stand where its placeholder does");
    stop_refusing(refused, refused.status);
    co_return false;
  }
  exchange_.wants_websocket = head.upgrade == RequestHead::Upgrade::websocket;
  const std::vector<Field> as_read = exchange_.as_sent.fields;
  is_origin_free_ = false;
  is_origin_tied_ |= ties_connection(exchange_.as_sent);
  sides_.origin.begin_request(repeats_of(head));
  Outgoing outgoing{.head = std::move(head), .as_read = &as_read};
  if (outgoing.head.body.kind != Framing::Kind::none) {
    co_return co_await send_with_body(std::move(outgoing));
  }
  std::string out = write_request_head(outgoing.head.request, as_read, outgoing.head.spacing);
  wipe_secrets(outgoing.head.request);
  exchange_.is_open = true;
  exchange_.is_body_sent = true;
  co_return co_await send_to_origin(out);
}

// Wipes what it sends. An origin that takes no more may have answered before: its answer is read.
Async<bool> Http1Relay::send_to_origin(std::string& out) {
  const ssize_t size = co_await send(LaneName::to_origin, out);
  secrets::wipe(out);
  out.clear();
  if (size == failed) exchange_.is_body_sent = false;
  co_return size != taken_away&& size != failed;
}

Async<bool> Http1Relay::send_with_body(Outgoing outgoing) {
  RequestHead& head = outgoing.head;
  BodySwap body = sides_.requests.keys().request_body(exchange_.as_sent);
  outgoing.is_chunked = head.body.kind == Framing::Kind::chunked;
  if (body.may_change_length() && !outgoing.is_chunked) {
    // Who waits for a 100 sends no body before the head has gone.
    if (head.body.length <= most_buffered && !head.expects_continue) {
      co_return co_await send_whole(std::move(outgoing), std::move(body));
    }
    Field* length = find_length(head.request);
    length->name = "Transfer-Encoding";
    length->value = "chunked";
    outgoing.is_chunked = true;
  }
  co_return co_await send_streaming(std::move(outgoing), std::move(body));
}

// Adds what may leave of what is there. False: refused.
bool Http1Relay::take_body(std::string& out, Unframer& unframer, BodySwap& body) {
  while (!from_client_.is_empty() && !unframer.has_stopped()) {
    const Unframer::Piece piece = unframer.next(from_client_.bytes());
    if (!piece.data.empty()) {
      const auto swapped = body.pass(piece.data);
      if (!swapped) {
        refuse_misuse(swapped.error());
        return false;
      }
      append_secretly(out, *swapped);
    }
    from_client_.drop(piece.size);
  }
  exchange_.admission.add(body.used());
  if (unframer.is_malformed()) {
    refuse_malformed("has a chunk that is none");
    return false;
  }
  if (!unframer.has_stopped()) return true;
  const auto rest = body.rest();
  if (!rest) {
    refuse_misuse(rest.error());
    return false;
  }
  append_secretly(out, *rest);
  exchange_.admission.add(body.used());
  return true;
}

Async<bool> Http1Relay::send_whole(Outgoing outgoing, BodySwap body) {
  RequestHead& head = outgoing.head;
  Unframer unframer(head.body);
  std::string content;
  for (;;) {
    if (!take_body(content, unframer, body)) break;
    if (unframer.is_done()) break;
    const ssize_t size = co_await fill(from_client_, never);
    if (size <= 0) {
      if (size != taken_away) stop(RelayEnd::failed);
      break;
    }
  }
  if (is_over_ || !unframer.is_done()) {
    secrets::wipe(content);
    wipe_secrets(head.request);
    co_return false;
  }
  find_length(head.request)->value = std::to_string(content.size());
  std::string out = write_request_head(head.request, *outgoing.as_read, head.spacing);
  wipe_secrets(head.request);
  append_secretly(out, content);
  secrets::wipe(content);
  exchange_.is_open = true;
  exchange_.is_body_sent = true;
  co_return co_await send_to_origin(out);
}

Async<bool> Http1Relay::send_streaming(Outgoing outgoing, BodySwap body) {
  RequestHead& head = outgoing.head;
  std::string out = write_request_head(head.request, *outgoing.as_read, head.spacing);
  wipe_secrets(head.request);
  exchange_.is_open = true;
  Unframer unframer(head.body);
  std::string data;
  for (;;) {
    if (!take_body(outgoing.is_chunked ? data : out, unframer, body)) {
      secrets::wipe(data);
      secrets::wipe(out);
      co_return false;
    }
    append_chunk_secretly(out, data);
    if (unframer.has_stopped()) break;
    if (!out.empty() && !co_await send_to_origin(out)) co_return false;
    const ssize_t size = co_await fill(from_client_, never);
    if (size == taken_away) co_return false;
    if (size <= 0) {
      stop(RelayEnd::failed);
      co_return false;
    }
  }
  if (unframer.is_at_trailers()) co_return co_await send_last_chunk(out);
  if (outgoing.is_chunked) append_secretly(out, "0\r\n\r\n");
  // Before it is sent: the answer may be there before the next line is reached.
  exchange_.is_body_sent = true;
  co_return co_await send_to_origin(out);
}

// After what is in `out`, which does not wait for trailers that are still to come.
Async<bool> Http1Relay::send_last_chunk(std::string& out) {
  const bool has_come = find_head_end(from_client_.bytes(), 0) > 0;
  if (!has_come && !out.empty() && !co_await send_to_origin(out)) co_return false;
  const Block block = co_await read_block(from_client_);
  if (block.came == Block::Came::over) co_return false;
  if (block.came == Block::Came::nothing || block.came == Block::Came::cut) {
    stop(RelayEnd::failed);
    co_return false;
  }
  if (block.came == Block::Came::too_long) {
    refuse_malformed("has trailers that are too long");
    co_return false;
  }
  const auto trailers = read_trailers(from_client_.bytes().substr(0, block.size));
  if (!trailers) {
    refuse_malformed(trailers.error());
    co_return false;
  }
  from_client_.drop(block.size);
  const auto checked = sides_.requests.keys().check_trailers(trailers->fields);
  if (!checked) {
    refuse_misuse(checked.error());
    co_return false;
  }
  append_secretly(out, last_chunk);
  append_secretly(out, write_trailers(*trailers));
  exchange_.is_body_sent = true;
  co_return co_await send_to_origin(out);
}

Async<bool> Http1Relay::pass_raw_to_origin() {
  for (;;) {
    if (!from_client_.is_empty()) {
      const ssize_t sent = co_await send(LaneName::to_origin, from_client_.bytes());
      if (sent == failed) stop(RelayEnd::failed);
      if (is_over_) co_return false;
      from_client_.drop(from_client_.bytes().size());
    }
    const ssize_t size = co_await fill(from_client_, never);
    if (size == taken_away) co_return false;
    if (size == failed) stop(RelayEnd::failed);
    if (size == failed) co_return false;
    if (size == ended) break;
  }
  if (!co_await finish(LaneName::to_origin)) stop(RelayEnd::taken_away);
  co_return false;
}

}  // namespace capgate::seal
