// TLS to endpoints that carry a sealed secret: spoken by the terminator in the client's place.
#include <array>
#include <vector>

#include "egress/connections.h"
#include "egress/io.h"

namespace capgate::egress {

Async<bool> Connections::terminate(Tunnel& tunnel, Attempt& attempt) {
  if (terminator_ == nullptr) {
    refuse(attempt, "not-terminated", "this broker speaks no TLS");
    tunnels_.end(tunnel, Ending::denied);
    co_return false;
  }
  const Terminator::Served served = co_await terminator_->serve(
      tunnel,
      {.flow = attempt.flow, .hello_bytes = attempt.opening.bytes, .hello = attempt.opening.hello});
  using How = Terminator::Served::How;
  if (served.how == How::taken_away) co_return false;
  if (!served.text.empty()) {
    const bool is_certificate = served.how == How::broken_certificate;
    refuse(attempt, is_certificate ? "certificate" : "handshake", served.text);
  }
  if (served.how == How::broken_certificate) co_return co_await show_certificate(tunnel, attempt);
  tunnels_.end(tunnel, served.ending);
  co_return false;
}

// The client itself shall see what is wrong with the certificate, and say so in its own words: its
// hello goes to the origin as it came, and the answer comes back as it is. Nothing else of the
// client ever leaves, so one that does not care gets no further.
Async<bool> Connections::show_certificate(Tunnel& tunnel, Attempt& attempt) {
  const Time deadline = loop_.now() + std::chrono::seconds(policy_.limits.dial_seconds);
  // Nobody waits on the tunnel's sockets meanwhile, so its end is heard of here.
  redialling_.push_back(attempt.record.number);
  Dialled again = co_await dial(loop_, {attempt.dialled}, attempt.flow.port, deadline);
  if (std::erase(redialling_, attempt.record.number) == 0) co_return false;
  if (!again.socket) {
    tunnels_.end(tunnel, Ending::failed);
    co_return false;
  }
  tunnel.replace_origin(std::move(again.socket));
  if (!co_await pass_on(tunnel, attempt.opening, attempt.opening.bytes.size())) co_return false;
  if (!tunnels_.release(tunnel, LaneName::to_client)) co_return false;
  std::array<char, 256> word;
  const ssize_t size = co_await read_some(loop_, tunnel.client(), word, never);
  if (size == taken_away) co_return false;
  tunnels_.end(tunnel, Ending::denied);
  co_return false;
}

}  // namespace capgate::egress
