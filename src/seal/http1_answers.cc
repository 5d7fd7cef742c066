// From the origin to the client.
#include <algorithm>

#include "base/format.h"
#include "egress/http_text.h"
#include "seal/http1_relay.h"

namespace capgate::seal {
namespace {

using egress::ended;
using egress::failed;
using egress::LaneName;
using egress::never;
using egress::taken_away;

constexpr int switching_protocols = 101;

bool is_interim(int status) { return status < 200 && status != switching_protocols; }

Framing framing_for(const ResponseHead& head, std::string_view method) {
  const int status = head.response.status;
  const bool is_bare = method == "HEAD" || status < 200 || status == 204 || status == 304;
  return is_bare ? Framing{} : head.body;
}

// NTLM and Negotiate authenticate a connection, not a request.
bool ties_connection(const Response& response) {
  constexpr int unauthorized = 401;
  return response.status == unauthorized ||
         find_field(response.fields, "www-authenticate") != nullptr;
}

}  // namespace

// Nothing of the answer has left yet.
void Http1Relay::refuse_answer(std::string_view reason, std::string_view text) {
  const Refused refused = sides_.requests.refuse(exchange_.as_sent, reason, text);
  constexpr int bad_gateway = 502;
  stop_refusing(refused, bad_gateway);
}

Async<bool> Http1Relay::pass_answers() {
  for (;;) {
    if (!co_await pass_answer()) co_return false;
    if (is_upgraded_) co_return co_await pass_raw_to_client();
  }
}

// The origin has ended, or says something that nobody asked for (that it was idle for too long).
void Http1Relay::end_of_answers() {
  is_origin_free_ = false;
  if (is_refusing_) {
    is_origin_gone_ = true;
    return;
  }
  stop(exchange_.is_open ? RelayEnd::failed : RelayEnd::closed);
}

Async<bool> Http1Relay::pass_answer() {
  if (from_origin_.is_empty()) {
    const ssize_t size = co_await fill(from_origin_, never);
    if (size == taken_away) co_return false;
    // What comes before a request would be taken for the answer to it.
    if (size <= 0 || !exchange_.is_open) {
      end_of_answers();
      co_return false;
    }
  }
  ResponseHead head;
  do {
    if (!co_await pass_answer_head(head)) co_return false;
  } while (is_interim(head.response.status));
  if (!co_await pass_final(std::move(head))) co_return false;

  exchange_.is_answering = false;
  exchange_.is_open = false;
  answered_.notify();
  co_return !is_over_;
}

// An interim one is sent, a final one is left in `head`.
Async<bool> Http1Relay::pass_answer_head(ResponseHead& head) {
  const Block block = co_await read_block(from_origin_);
  if (block.came == Block::Came::over) co_return false;
  if (block.came == Block::Came::nothing || block.came == Block::Came::cut) {
    stop(RelayEnd::failed);
    co_return false;
  }
  if (block.came == Block::Came::too_long) {
    refuse_answer("malformed-response", "the origin's answer has a head that is too long");
    co_return false;
  }
  auto read = read_response_head(from_origin_.bytes().substr(0, block.size));
  if (!read) {
    refuse_answer("malformed-response", format("the origin's answer {}", read.error()));
    co_return false;
  }
  from_origin_.drop(block.size);
  head = *std::move(read);
  const int status = head.response.status;
  if (status == switching_protocols && !exchange_.wants_websocket) {
    refuse_answer("malformed-response", "the origin changes a protocol that was not asked for");
    co_return false;
  }
  const std::size_t scrubbed = sides_.requests.keys().scrub(head.response);
  if (scrubbed > 0) sides_.requests.tell_scrubbed(scrubbed);
  if (!is_interim(status)) co_return true;
  exchange_.is_answering = true;
  const ssize_t size = co_await send(LaneName::to_client, write_response_head(head));
  if (size == failed) stop(RelayEnd::failed);
  if (size <= 0) co_return false;
  exchange_.is_answering = false;
  co_return true;
}

Async<bool> Http1Relay::pass_final(ResponseHead head) {
  const Framing framing = framing_for(head, exchange_.as_sent.method);
  const bool has_body = framing.kind != Framing::Kind::none;
  if (has_body && !sides_.requests.keys().is_readable(head.response)) {
    refuse_answer("encoded-response",
                  "the origin's answer is encoded, so it cannot be searched for the secret");
    co_return false;
  }
  exchange_.is_recorded = true;
  if (!sides_.requests.record(exchange_.as_sent, exchange_.admission, head.response.status)) {
    stop(RelayEnd::failed);
    co_return false;
  }
  exchange_.is_answering = true;
  is_origin_tied_ |= ties_connection(head.response);
  const bool is_last = head.is_last || framing.kind == Framing::Kind::until_close;
  if (exchange_.is_last && !head.is_last) end_with(head);
  if (!co_await pass_answer_body(write_response_head(head), framing)) co_return false;
  if (head.response.status == switching_protocols) {
    is_upgraded_ = true;
    co_return true;
  }
  // An answer to a request that has not ended: the rest of it would be read as the next one.
  if (is_last || !exchange_.is_body_sent || !from_origin_.is_empty()) {
    exchange_.is_answering = false;
    is_client_sending_ = !exchange_.is_body_sent;
    stop(RelayEnd::closed);
    co_return false;
  }
  is_origin_free_ = true;
  if (exchange_.is_last) {
    exchange_.is_answering = false;
    exchange_.is_open = false;
    is_client_sending_ = !from_client_.is_empty();
    stop(RelayEnd::closed);
    co_return false;
  }
  co_return true;
}

// The client has asked for it, and the origin does not know.
void Http1Relay::end_with(ResponseHead& head) {
  std::vector<Field>& fields = head.response.fields;
  const auto found = std::ranges::find_if(
      fields, [](const Field& field) { return is_field(field, "connection"); });
  if (found != fields.end() && egress::equal_in_any_case(found->value, "keep-alive")) {
    found->value = "close";
  } else {
    fields.push_back({.name = "Connection", .value = "close"});
  }
}

void Http1Relay::scrub_into(std::string& out, std::string_view data, Scrub& scrub) {
  const std::size_t before = scrub.found();
  out += scrub.pass(data);
  if (scrub.found() > before) sides_.requests.tell_scrubbed(scrub.found() - before);
}

Async<bool> Http1Relay::pass_answer_body(std::string out, Framing framing) {
  const bool is_chunked = framing.kind == Framing::Kind::chunked;
  Unframer unframer(framing);
  Scrub scrub = sides_.requests.keys().response_body();
  std::string data;
  bool has_ended = unframer.is_done();
  for (;;) {
    std::string& into = is_chunked ? data : out;
    while (!from_origin_.is_empty() && !unframer.has_stopped()) {
      const Unframer::Piece piece = unframer.next(from_origin_.bytes());
      if (!piece.data.empty()) scrub_into(into, piece.data, scrub);
      from_origin_.drop(piece.size);
    }
    has_ended |= unframer.has_stopped();
    if (has_ended) {
      const std::size_t before = scrub.found();
      into += scrub.rest();
      if (scrub.found() > before) sides_.requests.tell_scrubbed(scrub.found() - before);
    }
    append_chunk(out, data);
    data.clear();
    if (unframer.is_at_trailers()) co_return co_await send_answer_trailers(out);
    if (!out.empty()) {
      const ssize_t sent = co_await send(LaneName::to_client, out);
      if (sent == failed) stop(RelayEnd::failed);
      if (sent < 0) co_return false;
      out.clear();
    }
    // What is malformed ends where it began to be, and the client sees that it was cut.
    if (unframer.is_malformed()) stop(RelayEnd::failed);
    if (is_over_) co_return false;
    if (has_ended) co_return true;
    const ssize_t size = co_await fill(from_origin_, never);
    if (size == taken_away) co_return false;
    if (size == ended && unframer.is_until_close()) {
      has_ended = true;
    } else if (size <= 0) {
      stop(RelayEnd::failed);
      co_return false;
    }
  }
}

Async<bool> Http1Relay::send_answer_trailers(std::string& out) {
  const bool has_come = find_head_end(from_origin_.bytes(), 0) > 0;
  if (!has_come && !out.empty()) {
    const ssize_t sent = co_await send(LaneName::to_client, out);
    if (sent == failed) stop(RelayEnd::failed);
    if (sent < 0) co_return false;
    out.clear();
  }
  const Block block = co_await read_block(from_origin_);
  if (block.came == Block::Came::over) co_return false;
  if (block.came != Block::Came::whole) {
    stop(RelayEnd::failed);
    co_return false;
  }
  auto trailers = read_trailers(from_origin_.bytes().substr(0, block.size));
  if (!trailers) {
    stop(RelayEnd::failed);
    co_return false;
  }
  from_origin_.drop(block.size);
  const std::size_t scrubbed = sides_.requests.keys().scrub(trailers->fields);
  if (scrubbed > 0) sides_.requests.tell_scrubbed(scrubbed);
  out.append(last_chunk).append(write_trailers(*trailers));
  const ssize_t sent = co_await send(LaneName::to_client, out);
  if (sent == failed) stop(RelayEnd::failed);
  co_return sent > 0;
}

Async<bool> Http1Relay::pass_raw_to_client() {
  Scrub scrub = sides_.requests.keys().response_body();
  std::string out;
  for (;;) {
    scrub_into(out, from_origin_.bytes(), scrub);
    from_origin_.drop(from_origin_.bytes().size());
    if (!out.empty()) {
      const ssize_t sent = co_await send(LaneName::to_client, out);
      if (sent == failed) stop(RelayEnd::failed);
      if (sent < 0) co_return false;
      out.clear();
    }
    const ssize_t size = co_await fill(from_origin_, never);
    if (size == taken_away) co_return false;
    if (size == failed) stop(RelayEnd::failed);
    if (size == failed) co_return false;
    if (size == ended) break;
  }
  out = scrub.rest();
  if (!out.empty() && co_await send(LaneName::to_client, out) < 0) {
    stop(RelayEnd::failed);
    co_return false;
  }
  if (!co_await finish(LaneName::to_client)) stop(RelayEnd::taken_away);
  co_return false;
}

}  // namespace capgate::seal
