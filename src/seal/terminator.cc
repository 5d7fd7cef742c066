#include "seal/terminator.h"

#include <openssl/x509_vfy.h>

#include "base/format.h"
#include "seal/conversation.h"
#include "seal/relay.h"

namespace capgate::seal {
namespace {

using egress::Ending;
using Served = egress::Terminator::Served;
using Shaken = TlsStream::Shaken;

constexpr std::string_view http2 = "h2";

Ending ending_of(RelayEnd end) {
  switch (end) {
    case RelayEnd::closed: return Ending::closed;
    case RelayEnd::denied: return Ending::denied;
    case RelayEnd::failed:
    case RelayEnd::taken_away: break;
  }
  return Ending::failed;
}

Served failed(std::string text) {
  return {.how = Served::How::done, .ending = Ending::failed, .text = std::move(text)};
}

}  // namespace

SealTerminator::SealTerminator(Parts parts, Authority authority, Roots roots, Values values)
    : parts_(parts),
      tls_(std::move(authority), std::move(roots)),
      values_(std::move(values)),
      keyrings_(parts_.policy, values_) {}

SealTerminator::~SealTerminator() = default;

// The origin comes first: what it speaks is what the client is offered, and if its certificate is
// not good the client has heard nothing from us yet.
Async<Served> SealTerminator::shake_hands(Conversation& conversation, const Arrival& arrival) {
  const auto& limits = parts_.policy.limits;
  const std::string& host = arrival.flow.host.text;
  const std::string offered = spoken_protocols(arrival.hello.protocols);
  SslPtr to_origin = tls_.to_origin({host, arrival.flow.port}, offered);
  if (!to_origin) co_return failed(tls_.problem());
  conversation.add_origin(std::move(to_origin));
  TlsStream& origin = conversation.origin();
  switch (
      co_await origin.handshake(parts_.loop.now() + std::chrono::seconds(limits.dial_seconds))) {
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
  conversation.protocol() = origin.protocol();

  SslPtr to_client = tls_.to_client(host, conversation.protocol());
  if (!to_client) co_return failed(tls_.problem());
  conversation.add_client(std::move(to_client), arrival.hello_bytes);
  switch (co_await conversation.client().handshake(parts_.loop.now() +
                                                   std::chrono::seconds(limits.hello_seconds))) {
    case Shaken::done: co_return Served{};
    case Shaken::taken_away: co_return Served{.how = Served::How::taken_away};
    case Shaken::failed: break;
  }
  co_return failed(
      format("the client ended the TLS handshake ({}): it may not know this sandbox's certificate "
             "authority, or it pins certificates",
             last_error()));
}

Async<Served> SealTerminator::serve(egress::Tunnel& tunnel, Arrival arrival) {
  Conversation conversation({parts_.loop, parts_.policy, parts_.journal, values_, keyrings_},
                            tunnel, arrival.flow);
  live_.emplace(&tunnel, &conversation);
  Served served = co_await shake_hands(conversation, arrival);
  if (conversation.is_left()) co_return Served{.how = Served::How::taken_away};
  if (served.how == Served::How::done && served.ending == Ending::closed) {
    const Sides sides{.loop = parts_.loop,
                      .client = conversation.client(),
                      .origin = conversation.origin(),
                      .requests = conversation,
                      .most_head_bytes = parts_.policy.limits.head_bytes,
                      .head_seconds = parts_.policy.limits.hello_seconds};
    const RelayEnd end = conversation.protocol() == http2 ? co_await relay_http2(sides)
                                                          : co_await relay_http1(sides);
    if (conversation.is_left()) co_return Served{.how = Served::How::taken_away};
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
