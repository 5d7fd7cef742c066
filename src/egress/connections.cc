#include "egress/connections.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/format.h"
#include "egress/io.h"
#include "egress/loopback.h"

namespace capgate::egress {
namespace {

std::string_view protocol_name(Speech speech) {
  switch (speech) {
    case Speech::tls: return "tls";
    case Speech::http: return "http";
    case Speech::unknown:
    case Speech::other: break;
  }
  return "tcp";
}

// The rule asks for no protocol at all.
bool is_anything(const Verdict& verdict) {
  return verdict.rule != nullptr &&
         verdict.rule->connect.refinements.proto == core::NetRefinements::Proto::tcp;
}

bool compares_nothing(const Verdict& verdict) {
  return verdict.rule != nullptr &&
         verdict.rule->connect.refinements.sni == core::NetRefinements::Sni::any;
}

}  // namespace

Connections::Connections(Loop& loop, const Policy& policy, NameBook& names, Journal& journal)
    : loop_(loop),
      policy_(policy),
      names_(names),
      journal_(journal),
      resolver_(loop),
      tunnels_(loop, policy.limits.idle_seconds, policy.limits.bytes,
               [this](Tunnel& tunnel, Ending ending) {
                 if (terminator_ != nullptr) terminator_->ended(tunnel);
                 std::erase(redialling_, tunnel.record().number);
                 journal_.close(tunnel.record(), tunnel.bytes(LaneName::to_origin),
                                tunnel.bytes(LaneName::to_client), ending_name(ending));
                 if (ending == Ending::limited) tell_used_up();
               }) {}

void Connections::tell_used_up() {
  journal_.tell_limit("bytes", "the sandbox has used up its bytes; see --net-limit bytes=");
}

// Who waited for a name may wait on a socket next, so sockets come last.
void Connections::end_all() {
  tunnels_.end_all(Ending::stopped);
  resolver_.cancel();
  loop_.cancel_all();
}

Connections::Attempt Connections::begin(core::HostPattern host, std::uint16_t port,
                                        std::string_view protocol) {
  Attempt attempt;
  attempt.record = {.number = journal_.next_flow(),
                    .host = host.text,
                    .port = port,
                    .protocol = protocol,
                    .started = loop_.now()};
  const bool terminated = is_sealed(policy_, host, port);
  attempt.flow = {.host = std::move(host), .port = port, .terminated = terminated};
  return attempt;
}

core::HostPattern Connections::host_behind(const Address& to, std::uint16_t port) {
  std::array<std::uint8_t, 4> ipv4{};
  std::copy_n(to.bytes.begin(), ipv4.size(), ipv4.begin());
  const std::string_view name = to.ipv6 ? names_.name_of(to.bytes) : names_.name_of(ipv4);
  if (!name.empty()) {
    if (auto host = core::parse_host(name)) return *std::move(host);
  }
  return host_meant(policy_, to_host(to), port);
}

bool Connections::is_allowed(Attempt& attempt) {
  attempt.verdict = decide(policy_, attempt.flow);
  attempt.record.rule = attempt.verdict.rule;
  if (attempt.verdict.is_allowed()) return true;
  journal_.deny(attempt.record, attempt.flow, attempt.verdict);
  return false;
}

void Connections::refuse(const Attempt& attempt, std::string_view reason, std::string_view text) {
  journal_.refuse(attempt.record, attempt.flow, reason, text);
}

bool Connections::is_spoken_well(Attempt& attempt, Heard heard) {
  Opening& opening = attempt.opening;
  const bool must_know = must_speak_first(attempt.verdict);
  // Under proto=tcp what only looks like TLS or HTTP is neither.
  if (opening.is_malformed && is_anything(attempt.verdict)) {
    opening.is_malformed = false;
    opening.speech = Speech::other;
  }
  // Where it need not be known, too: what began as a hello or a request and stops is not finished
  // behind our back.
  const bool is_held_back = heard == Heard::part && opening.bytes.size() > opening.passed;
  if (heard != Heard::all && (must_know || is_held_back)) {
    refuse(attempt, "silent", "it did not say what it speaks");
    return false;
  }
  if (heard != Heard::all) opening.speech = Speech::other;
  describe(attempt.flow, opening);
  if (attempt.manner == Manner::none) attempt.record.protocol = protocol_name(opening.speech);
  // An origin would believe the target rather than Host; only a proxy is asked like that.
  const bool asks_a_proxy =
      opening.speech == Speech::http && !attempt.is_proxied_http && !opening.head.authority.empty();
  if (opening.is_malformed || asks_a_proxy) {
    refuse(attempt, "malformed",
           opening.speech == Speech::tls ? "its TLS hello is not valid"
                                         : "its request is not strict HTTP/1.1");
    return false;
  }
  if (attempt.flow.terminated && opening.speech != Speech::tls) {
    refuse(attempt, "plain-text", "a sealed secret goes there, so nothing but TLS does");
    return false;
  }
  return is_allowed(attempt);
}

// Every address is checked here, and only those that were checked are dialled.
Async<std::vector<Address>> Connections::find_addresses(Attempt& attempt) {
  const core::HostPattern& host = attempt.flow.host;
  Resolved resolved;
  if (host.kind != core::HostPattern::Kind::name) {
    resolved.addresses = {Address::of(host)};
  } else if (host.text == "localhost") {
    resolved.addresses = {loopback_ipv4, loopback_ipv6};
  } else {
    resolved = co_await resolver_.resolve(host.text);
  }
  if (resolved.addresses.empty()) {
    refuse(attempt, "unresolved", format("its name was not resolved: {}", resolved.why));
  }
  std::vector<Address> good;
  Verdict bad;
  for (const Address& address : resolved.addresses) {
    attempt.flow.address = to_host(address);
    attempt.flow.address_is_own = own_.contains(address, loop_.now());
    const Verdict verdict = decide(policy_, attempt.flow);
    if (!verdict.is_allowed()) {
      bad = verdict;
      continue;
    }
    attempt.verdict = verdict;
    good.push_back(address);
  }
  if (good.empty() && !resolved.addresses.empty()) {
    attempt.record.address = attempt.flow.address->text;
    journal_.deny(attempt.record, attempt.flow, bad);
  }
  co_return good;
}

Async<Dialled> Connections::open(Attempt& attempt) {
  const bool is_reused = take_kept(attempt);
  if (is_reused && !is_recorded(attempt)) co_return Dialled{};
  if (is_reused) {
    co_return Dialled{.socket = std::move(attempt.kept->socket), .address = attempt.dialled};
  }
  std::vector<Address> addresses = co_await find_addresses(attempt);
  if (addresses.empty()) co_return Dialled{};
  attempt.flow.address.reset();
  attempt.flow.address_is_own = false;
  FlowRecord& record = attempt.record;
  record.address = to_text(addresses.front());
  if (!is_recorded(attempt)) co_return Dialled{};
  const Time deadline = loop_.now() + std::chrono::seconds(policy_.limits.dial_seconds);
  Dialled dialled = co_await dial(loop_, std::move(addresses), attempt.flow.port, deadline);
  if (dialled.socket) {
    record.address = to_text(dialled.address);
    attempt.dialled = dialled.address;
  } else {
    journal_.close(record, 0, 0, format("unreachable: {}", dialled.why));
  }
  co_return dialled;
}

bool Connections::is_recorded(Attempt& attempt) {
  attempt.record.rule = attempt.verdict.rule;
  if (journal_.allow(attempt.record, attempt.flow, attempt.verdict)) return true;
  journal_.tell_limit(
      "audit",
      format("the audit log cannot be written ({}), so nothing is connected", journal_.problem()));
  return false;
}

// The steps up to a connection with the origin. Without one the flow was refused, and told.
Async<Dialled> Connections::admit(Socket& client, Attempt& attempt) {
  if (!is_allowed(attempt)) co_return Dialled{};
  if (must_speak_first(attempt.verdict)) {
    const Heard heard = co_await read_opening(loop_, client, attempt.opening, policy_.limits, {});
    if (heard == Heard::nothing || heard == Heard::broken) {
      journal_.close(attempt.record, 0, 0, "left without a word");
      co_return Dialled{};
    }
    if (heard == Heard::taken_away || !is_spoken_well(attempt, heard)) co_return Dialled{};
  }
  co_return co_await open(attempt);
}

Task Connections::captured(SocketPtr client, Address to, std::uint16_t port) {
  Counted counted(opening_);
  Attempt attempt = begin(host_behind(to, port), port, "tcp");
  Dialled origin = co_await admit(*client, attempt);
  if (!origin.socket) {
    reset_on_close(*client);
    co_return;
  }
  counted.done();
  co_await carry(std::move(client), std::move(origin.socket), std::move(attempt));
}

Async<bool> Connections::carry(SocketPtr client, SocketPtr origin, Attempt attempt) {
  Tunnel& tunnel = tunnels_.join(std::move(client), std::move(origin), attempt.record);
  if (attempt.flow.speech == Speech::unknown && !co_await hear_beside_origin(tunnel, attempt)) {
    co_return false;
  }
  tunnel.record().protocol = attempt.record.protocol;
  if (attempt.flow.speech == Speech::http) {
    co_return co_await pass_requests(tunnel, std::move(attempt));
  }
  if (attempt.flow.terminated) co_return co_await terminate(tunnel, attempt);
  co_return co_await pass_opening(tunnel, attempt);
}

// The connection stands already. Where the server may speak first it does so while we listen to the
// client; where the client must, nothing passes before.
Async<bool> Connections::hear_beside_origin(Tunnel& tunnel, Attempt& attempt) {
  const bool client_first = must_speak_first(attempt.verdict);
  Doubt doubt = client_first ? Doubt::wait : Doubt::tell;
  if (!client_first && (is_anything(attempt.verdict) || compares_nothing(attempt.verdict))) {
    doubt = Doubt::tell_all;
  }
  if (!client_first && !tunnels_.release(tunnel, LaneName::to_client)) co_return false;
  Opening& opening = attempt.opening;
  for (;;) {
    const Heard heard = co_await read_opening(loop_, tunnel.client(), opening, policy_.limits,
                                              {.is_limited = client_first, .doubt = doubt});
    if (heard == Heard::taken_away) co_return false;
    if (heard == Heard::broken) {
      tunnels_.end(tunnel, Ending::failed);
      co_return false;
    }
    if (heard == Heard::doubt) {
      if (!co_await pass_on(tunnel, opening, opening.bytes.size())) co_return false;
      continue;
    }
    if (heard == Heard::nothing) {
      if (client_first) {
        tunnels_.end(tunnel, Ending::closed);
      } else {
        tunnels_.finish(tunnel, LaneName::to_origin);
      }
      co_return false;
    }
    if (!is_spoken_well(attempt, heard)) {
      tunnels_.end(tunnel, Ending::denied);
      co_return false;
    }
    const std::size_t request = postgres_request_size(opening.bytes);
    if (request == 0) break;
    if (!co_await pass_on(tunnel, opening, request)) co_return false;
    opening = {.bytes = opening.bytes.substr(request)};
  }
  co_return true;
}

// Of the opening, the first `size` bytes. False: the tunnel has ended.
Async<bool> Connections::pass_on(Tunnel& tunnel, Opening& opening, std::size_t size) {
  const auto bytes = std::string_view(opening.bytes).substr(0, size).substr(opening.passed);
  const ssize_t sent = co_await write_all(loop_, tunnel.origin(), bytes, never);
  if (sent == taken_away) co_return false;
  if (sent == failed) {
    tunnels_.end(tunnel, Ending::failed);
    co_return false;
  }
  tunnel.add_bytes(LaneName::to_origin, bytes.size());
  opening.passed = size;
  co_return true;
}

Async<bool> Connections::pass_opening(Tunnel& tunnel, Attempt& attempt) {
  Opening& opening = attempt.opening;
  if (!co_await pass_on(tunnel, opening, opening.bytes.size())) co_return false;
  tunnels_.release(tunnel);
  co_return true;
}

// The server may listen in one family only.
Task Connections::inbound(SocketPtr client, std::uint16_t port, InnerSockets inner) {
  Counted counted(opening_);
  FlowRecord record{.number = journal_.next_flow(),
                    .host = "localhost",
                    .port = port,
                    .protocol = "tcp",
                    .started = loop_.now()};
  if (!journal_.allow_inbound(record)) co_return reset_on_close(*client);
  const Time deadline = loop_.now() + std::chrono::seconds(policy_.limits.dial_seconds);
  SocketPtr server;
  if (sys::Fd fd = inner(wire::Family::ipv4); fd.get() >= 0) {
    server = co_await connect(loop_, std::move(fd), loopback_ipv4, port, deadline);
  }
  if (!server) {
    sys::Fd fd = inner(wire::Family::ipv6);
    if (fd.get() >= 0) {
      server = co_await connect(loop_, std::move(fd), loopback_ipv6, port, deadline);
    }
  }
  if (!server) {
    journal_.close(record, 0, 0, "unreachable: the server does not listen there");
    co_return reset_on_close(*client);
  }
  counted.done();
  tunnels_.release(tunnels_.join(std::move(client), std::move(server), std::move(record)));
}

}  // namespace capgate::egress
