// TLS to endpoints that carry a sealed secret: spoken by the terminator in the client's place.
#include <array>
#include <vector>

#include "egress/connections.h"
#include "egress/handshake_only.h"
#include "egress/io.h"

namespace capgate::egress {
namespace {

constexpr std::chrono::seconds time_to_object{1};

}  // namespace

bool Connections::may_have_kept(const Attempt& attempt) const {
  return attempt.flow.terminated && terminator_ != nullptr && terminator_->has_kept(attempt.flow);
}

// A connection that an earlier client has left. Its address was checked when it was dialled, and is
// again: addresses of this host may have changed.
bool Connections::take_kept(Attempt& attempt) {
  if (attempt.flow.speech != Speech::tls || !may_have_kept(attempt)) return false;
  KeptOriginPtr kept = terminator_->take_kept(attempt.flow, attempt.opening.hello);
  if (!kept) return false;
  Flow flow = attempt.flow;
  flow.address = to_host(kept->address);
  flow.address_is_own = own_.contains(kept->address, loop_.now());
  const Verdict verdict = decide(policy_, flow);
  if (!verdict.is_allowed()) return false;
  attempt.verdict = verdict;
  attempt.dialled = kept->address;
  attempt.record.address = to_text(kept->address);
  attempt.record.is_reused = true;
  attempt.kept = std::move(kept);
  return true;
}

Async<bool> Connections::terminate(Tunnel& tunnel, Attempt& attempt) {
  if (terminator_ == nullptr) {
    refuse(attempt, "not-terminated", "this broker speaks no TLS");
    tunnels_.end(tunnel, Ending::denied);
    co_return false;
  }
  const Terminator::Served served =
      co_await terminator_->serve(tunnel, {.flow = attempt.flow,
                                           .hello_bytes = attempt.opening.bytes,
                                           .hello = attempt.opening.hello,
                                           .address = attempt.dialled,
                                           .kept = std::move(attempt.kept)});
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
// handshake goes to the origin as it is, and the answers come back. Some clients look at the
// certificate when the handshake is over, so all of it passes; no data does, so one that does not
// care gets no further.
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
  if (!tunnels_.release(tunnel, LaneName::to_client)) co_return false;
  if (co_await pass_handshake(tunnel, attempt.opening.bytes)) tunnels_.end(tunnel, Ending::denied);
  co_return false;
}

// Until the client leaves, or has had time to. False: the tunnel has ended.
Async<bool> Connections::pass_handshake(Tunnel& tunnel, std::string_view opening) {
  HandshakeOnly filter;
  Time deadline = never;
  std::array<char, 4096> room;
  std::string_view said = opening;
  for (;;) {
    const std::string_view passed = filter.pass(said);
    const ssize_t sent = co_await write_all(loop_, tunnel.origin(), passed, never);
    if (sent == taken_away) co_return false;
    if (sent == failed) co_return true;
    tunnel.add_bytes(LaneName::to_origin, passed.size());
    if (filter.is_over() && deadline == never) deadline = loop_.now() + time_to_object;
    const ssize_t size = co_await read_some(loop_, tunnel.client(), room, deadline);
    if (size == taken_away) co_return false;
    if (size <= 0) co_return true;
    said = {room.data(), static_cast<std::size_t>(size)};
  }
}

}  // namespace capgate::egress
