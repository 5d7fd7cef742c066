#include "seal/terminator.h"

#include <openssl/x509_vfy.h>

#include <optional>

#include "base/format.h"
#include "egress/dial.h"
#include "seal/conversation.h"
#include "seal/relay.h"
#include "seal/signal.h"

namespace capgate::seal {
namespace {

using egress::Ending;
using Served = egress::Terminator::Served;
using Shaken = TlsStream::Shaken;

constexpr std::string_view http2 = "h2";

Ending ending_of(RelayEnd end) {
  switch (end) {
    case RelayEnd::closed:
    case RelayEnd::origin_free: return Ending::closed;
    case RelayEnd::denied: return Ending::denied;
    case RelayEnd::failed:
    case RelayEnd::taken_away: break;
  }
  return Ending::failed;
}

Served failed(std::string text) {
  return {.how = Served::How::done, .ending = Ending::failed, .text = std::move(text)};
}

Tls::Endpoint endpoint_of(const egress::Flow& flow) { return {flow.host.text, flow.port}; }

bool is_greeted(const Served& served) {
  return served.how == Served::How::done && served.ending == Ending::closed;
}

}  // namespace

SealTerminator::SealTerminator(Parts parts, Authority authority, Roots roots, Values values)
    : parts_(parts),
      requests_(parts_.policy.limits.requests_per_second),
      tls_(std::move(authority), std::move(roots)),
      pool_(parts_.loop),
      values_(std::move(values)),
      keyrings_(parts_.policy, values_) {}

SealTerminator::~SealTerminator() = default;

bool SealTerminator::has_kept(const egress::Flow& flow) const {
  return pool_.has(endpoint_of(flow));
}

egress::KeptOriginPtr SealTerminator::take_kept(const egress::Flow& flow,
                                                const egress::ClientHello& hello) {
  return pool_.take({endpoint_of(flow), spoken_protocols(hello.protocols)});
}

Async<Served> SealTerminator::greet_origin(Conversation& conversation, const Arrival& arrival) {
  const Tls::Endpoint endpoint = endpoint_of(arrival.flow);
  const std::string offered = spoken_protocols(arrival.hello.protocols);
  SslPtr ssl = tls_.to_origin(endpoint, offered);
  if (!ssl) co_return failed(tls_.problem());
  conversation.add_origin(std::move(ssl));
  TlsStream& origin = conversation.origin();
  const auto patience = std::chrono::seconds(parts_.policy.limits.dial_seconds);
  switch (co_await origin.handshake(parts_.loop.now() + patience)) {
    case Shaken::done: break;
    case Shaken::taken_away: co_return Served{.how = Served::How::taken_away};
    case Shaken::failed: {
      const long verdict = SSL_get_verify_result(&origin.ssl());
      if (verdict == X509_V_OK) {
        co_return failed(format("the TLS handshake with the origin failed: {}", last_error()));
      }
      co_return Served{.how = Served::How::broken_certificate,
                       .text = format("the origin's certificate is not good: {}",
                                      X509_verify_cert_error_string(verdict))};
    }
  }
  tls_.remember_protocol(endpoint, offered, origin.protocol());
  co_return Served{};
}

// `conversation.protocol()` is what it is offered.
Async<Served> SealTerminator::greet_client(Conversation& conversation, const Arrival& arrival) {
  SslPtr ssl = tls_.to_client(arrival.flow.host.text, conversation.protocol());
  if (!ssl) co_return failed(tls_.problem());
  conversation.add_client(std::move(ssl), arrival.hello_bytes);
  const auto patience = std::chrono::seconds(parts_.policy.limits.hello_seconds);
  switch (co_await conversation.client().handshake(parts_.loop.now() + patience)) {
    case Shaken::done: co_return Served{};
    case Shaken::taken_away: co_return Served{.how = Served::How::taken_away};
    case Shaken::failed: break;
  }
  co_return failed(
      format("the client ended the TLS handshake ({}): it may not know this sandbox's certificate "
             "authority, or it pins certificates",
             last_error()));
}

// The origin comes first: what it speaks is what the client is offered, and if its certificate is
// not good the client has heard nothing from us yet. An origin that was verified before and resumes
// the session shows no certificate, and speaks what it spoke then: nothing has to wait for it.
Async<Served> SealTerminator::shake_hands(Conversation& conversation, const Arrival& arrival) {
  if (conversation.is_reused()) co_return co_await greet_client(conversation, arrival);
  const auto expected =
      tls_.expected_protocol(endpoint_of(arrival.flow), spoken_protocols(arrival.hello.protocols));
  if (expected) {
    conversation.protocol() = *expected;
    co_return co_await greet_both(conversation, arrival);
  }
  Served served = co_await greet_origin(conversation, arrival);
  if (!is_greeted(served)) co_return served;
  conversation.protocol() = conversation.origin().protocol();
  co_return co_await greet_client(conversation, arrival);
}

Async<Served> SealTerminator::greet_both(Conversation& conversation, const Arrival& arrival) {
  std::optional<Served> of_client;
  Signal client_done;
  const auto greet = [&]() -> egress::Task {
    of_client = co_await greet_client(conversation, arrival);
    client_done.notify();
  };
  greet();
  const Served served = co_await greet_origin(conversation, arrival);
  const bool is_other =
      is_greeted(served) && conversation.origin().protocol() != conversation.protocol();
  if ((!is_greeted(served) || is_other) && !of_client) conversation.client().cancel();
  while (!of_client) co_await client_done;
  if (conversation.is_left()) co_return Served{.how = Served::How::taken_away};
  if (is_greeted(served) && !is_other) co_return *std::move(of_client);
  // The next connection waits for the origin again, and shows the client what is wrong with it.
  tls_.forget(endpoint_of(arrival.flow));
  co_return failed(is_other ? "the origin speaks something else than before" : served.text);
}

// For a client that was greeted on a kept connection: as that one was, or not at all.
Async<Stream*> SealTerminator::connect_again(Conversation& conversation, const Arrival& arrival) {
  const auto fail = [&](std::string_view text) -> Stream* {
    parts_.journal.refuse(conversation.tunnel().record(), arrival.flow, "handshake", text);
    return nullptr;
  };
  const Time deadline = parts_.loop.now() + std::chrono::seconds(parts_.policy.limits.dial_seconds);
  egress::Dialled dialled =
      co_await egress::dial(parts_.loop, {arrival.address}, arrival.flow.port, deadline);
  if (conversation.is_left()) co_return nullptr;
  if (!dialled.socket) co_return fail(format("the origin was not reached: {}", dialled.why));
  SslPtr ssl = tls_.to_origin(endpoint_of(arrival.flow), spoken_protocols(arrival.hello.protocols));
  if (!ssl) co_return fail(tls_.problem());
  auto stream = std::make_unique<TlsStream>(parts_.loop, *dialled.socket, std::move(ssl));
  const Shaken shaken = co_await stream->handshake(deadline);
  if (conversation.is_left()) co_return nullptr;
  if (shaken != Shaken::done) {
    co_return fail(format("the TLS handshake with the origin failed: {}", last_error()));
  }
  if (stream->protocol() != conversation.protocol()) {
    co_return fail("the origin speaks something else than before");
  }
  conversation.replace_origin(std::move(dialled.socket), std::move(stream));
  co_return &conversation.origin();
}

Async<RelayEnd> SealTerminator::relay(Conversation& conversation) {
  const bool is_http2 = conversation.protocol() == http2;
  const Sides sides{.loop = parts_.loop,
                    .client = conversation.client(),
                    .origin = conversation.origin_stream(),
                    .requests = conversation,
                    .most_head_bytes = parts_.policy.limits.head_bytes,
                    .head_seconds = parts_.policy.limits.hello_seconds,
                    .buffers = &buffers_,
                    .keeps_origin = true};
  co_return is_http2 ? co_await relay_http2(sides) : co_await relay_http1(sides);
}

Async<Served> SealTerminator::serve(egress::Tunnel& tunnel, Arrival arrival) {
  Conversation conversation(
      {parts_.loop, parts_.policy, parts_.journal, values_, keyrings_, requests_}, tunnel,
      arrival.flow);
  live_.emplace(&tunnel, &conversation);
  if (arrival.kept) {
    // It is one that take_kept() gave away.
    conversation.add_kept(KeptTlsPtr(static_cast<KeptTls*>(arrival.kept.release())),
                          [&] { return connect_again(conversation, arrival); });
  }
  Served served = co_await shake_hands(conversation, arrival);
  if (conversation.is_left()) co_return Served{.how = Served::How::taken_away};
  if (is_greeted(served)) {
    const RelayEnd end = co_await relay(conversation);
    if (conversation.is_left()) co_return Served{.how = Served::How::taken_away};
    if (end == RelayEnd::origin_free) {
      pool_.keep(conversation.take_origin(
          {endpoint_of(arrival.flow), spoken_protocols(arrival.hello.protocols)}, arrival.address));
    }
    served.ending = ending_of(end);
  }
  live_.erase(&tunnel);
  co_return served;
}

void SealTerminator::ended(egress::Tunnel& tunnel) {
  const auto found = live_.find(&tunnel);
  if (found == live_.end()) return;
  Conversation& conversation = *found->second;
  live_.erase(found);
  conversation.leave();
}

}  // namespace capgate::seal
