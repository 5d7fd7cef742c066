// Plain HTTP: every request of a connection names its host, so every one is looked at.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "egress/connections.h"
#include "egress/io.h"

namespace capgate::egress {
namespace {

constexpr std::size_t chunk_size = 16384;

std::size_t longest_placeholder(const Policy& policy) {
  std::size_t out = 0;
  for (const Seal& seal : policy.seals) out = std::max(out, seal.placeholder.size());
  return out;
}

}  // namespace

Async<bool> Connections::pass_requests(Tunnel& tunnel, Attempt attempt) {
  Opening& opening = attempt.opening;
  for (bool is_first = true;; is_first = false) {
    const HttpHead& head = opening.head;
    if (head.method == "CONNECT" || (head.wants_upgrade && !is_first)) {
      refuse(attempt, "not-spoken-here", "CONNECT, or an upgrade of a connection in use");
      tunnels_.end(tunnel, Ending::denied);
      co_return false;
    }
    const std::string_view bytes = std::string_view(opening.bytes).substr(0, head.size);
    if (shows_placeholder(attempt, bytes)) {
      tunnels_.end(tunnel, Ending::denied);
      co_return false;
    }
    const std::string sent = attempt.is_proxied_http ? to_origin_form(bytes, head)
                                                     : std::string(bytes.substr(opening.passed));
    const ssize_t size = co_await write_all(loop_, tunnel.origin(), sent, never);
    if (size == taken_away) co_return false;
    if (size == failed) {
      tunnels_.end(tunnel, Ending::failed);
      co_return false;
    }
    tunnel.add_bytes(LaneName::to_origin, sent.size());
    opening.bytes.erase(0, head.size);
    opening.passed = 0;
    const bool is_answered_at_once = is_first && !head.wants_upgrade;
    if (is_answered_at_once && !tunnels_.release(tunnel, LaneName::to_client)) co_return false;
    if (!co_await pass_body(tunnel, attempt)) co_return false;
    // After the body: an origin answers when it has all of the request.
    if (head.wants_upgrade && !co_await pass_upgrade(tunnel, attempt)) co_return false;
    if (!co_await read_next_head(tunnel, attempt)) co_return false;
  }
}

// The connection becomes something else only if the origin agrees and it is a WebSocket; until then
// the client's next bytes wait. An upgrade that is not taken up leaves HTTP/1.1 as it was.
Async<bool> Connections::pass_upgrade(Tunnel& tunnel, Attempt& attempt) {
  std::string answer;
  StatusReading status;
  while (status.progress == Progress::more) {
    std::array<char, 1024> chunk;
    const ssize_t size = co_await read_some(loop_, tunnel.origin(), chunk, never);
    if (size == taken_away) co_return false;
    if (size <= 0) {
      tunnels_.end(tunnel, Ending::failed);
      co_return false;
    }
    answer.append(chunk.data(), static_cast<std::size_t>(size));
    status = read_http_status(answer);
  }
  const bool is_agreed = status.progress == Progress::done && status.status == 101;
  if (is_agreed && !attempt.opening.head.wants_websocket) {
    refuse(attempt, "not-spoken-here", "an upgrade to something that is no WebSocket");
    tunnels_.end(tunnel, Ending::denied);
    co_return false;
  }
  const ssize_t size = co_await write_all(loop_, tunnel.client(), answer, never);
  if (size == taken_away) co_return false;
  tunnel.add_bytes(LaneName::to_client, answer.size());
  if (!is_agreed) co_return tunnels_.release(tunnel, LaneName::to_client);
  co_await pass_opening(tunnel, attempt);
  co_return false;
}

Async<bool> Connections::pass_body(Tunnel& tunnel, Attempt& attempt) {
  std::string& bytes = attempt.opening.bytes;
  BodyReader body(attempt.opening.head);
  std::string seen;  // the end of what has passed: a placeholder may come in pieces
  while (!body.is_done()) {
    if (bytes.empty()) {
      std::array<char, chunk_size> chunk;
      const ssize_t size = co_await read_some(loop_, tunnel.client(), chunk, never);
      if (size == taken_away) co_return false;
      if (size <= 0) {
        tunnels_.end(tunnel, Ending::failed);
        co_return false;
      }
      bytes.assign(chunk.data(), static_cast<std::size_t>(size));
    }
    const std::size_t taken = body.take(bytes);
    if (body.is_malformed()) {
      refuse(attempt, "malformed", "the body of its request is not strict HTTP/1.1");
      tunnels_.end(tunnel, Ending::denied);
      co_return false;
    }
    if (!policy_.seals.empty()) {
      seen.append(bytes, 0, taken);
      if (shows_placeholder(attempt, seen)) {
        tunnels_.end(tunnel, Ending::denied);
        co_return false;
      }
      seen.erase(0, seen.size() - std::min(seen.size(), longest_placeholder(policy_)));
    }
    const ssize_t size =
        co_await write_all(loop_, tunnel.origin(), std::string_view(bytes).substr(0, taken), never);
    if (size == taken_away) co_return false;
    if (size == failed) {
      tunnels_.end(tunnel, Ending::failed);
      co_return false;
    }
    tunnel.add_bytes(LaneName::to_origin, taken);
    bytes.erase(0, taken);
  }
  co_return true;
}

Async<bool> Connections::read_next_head(Tunnel& tunnel, Attempt& attempt) {
  attempt.opening = {.bytes = std::move(attempt.opening.bytes)};
  const Heard heard = co_await read_opening(loop_, tunnel.client(), attempt.opening, policy_.limits,
                                            {.is_limited = false});
  if (heard == Heard::taken_away) co_return false;
  if (heard == Heard::broken) {
    tunnels_.end(tunnel, Ending::failed);
    co_return false;
  }
  if (heard == Heard::nothing) {
    tunnels_.finish(tunnel, LaneName::to_origin);
    co_return false;
  }
  const bool is_http = heard == Heard::all && attempt.opening.speech == Speech::http;
  if (!is_http) refuse(attempt, "malformed", "after a request something came that is no request");
  if (is_http && is_spoken_well(attempt, heard) && is_same_place(attempt)) co_return true;
  // The answers to what was allowed before may still be on their way.
  tunnels_.finish(tunnel, LaneName::to_origin);
  co_return false;
}

bool Connections::shows_placeholder(const Attempt& attempt, std::string_view bytes) {
  for (const Seal& seal : policy_.seals) {
    if (!bytes.contains(seal.placeholder)) continue;
    refuse(attempt, "plain-text",
           format("the placeholder of {} in a request without TLS", seal.env.name));
    return true;
  }
  return false;
}

// A proxy's client may ask for another place on the same connection; this one leads to one place.
bool Connections::is_same_place(const Attempt& attempt) {
  if (!attempt.is_proxied_http) return true;
  const auto endpoint = core::parse_endpoint(attempt.opening.head.authority);
  constexpr std::uint16_t http_port = 80;
  const bool is_same = endpoint && endpoint->host == attempt.flow.host &&
                       endpoint->port.value_or(http_port) == attempt.flow.port;
  if (!is_same) refuse(attempt, "other-name", "one connection to the proxy leads to one place");
  return is_same;
}

}  // namespace capgate::egress
