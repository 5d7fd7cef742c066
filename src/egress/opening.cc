#include "egress/opening.h"

#include <algorithm>
#include <array>

#include "egress/io.h"

namespace capgate::egress {
namespace {

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

bool settle(Opening& opening, Speech speech, Progress progress) {
  if (progress == Progress::more) return false;
  opening.speech = speech;
  opening.is_malformed = progress == Progress::malformed;
  return true;
}

constexpr std::string_view postgres_requests[] = {{"\x00\x00\x00\x08\x04\xd2\x16\x2f", 8},
                                                  {"\x00\x00\x00\x08\x04\xd2\x16\x30", 8}};

bool may_become_postgres_request(std::string_view bytes) {
  return std::ranges::any_of(postgres_requests, [&](std::string_view request) {
    return bytes.size() < request.size() && request.starts_with(bytes);
  });
}

bool may_begin_with_method(std::string_view bytes) {
  constexpr std::string_view methods[] = {"GET ",     "HEAD ",    "POST ",  "PUT ",  "DELETE ",
                                          "CONNECT ", "OPTIONS ", "TRACE ", "PATCH "};
  return std::ranges::any_of(methods, [&](std::string_view method) {
    return bytes.starts_with(method) || method.starts_with(bytes);
  });
}

// The one parser takes rules, too.
bool is_wildcard(const core::HostPattern& host) {
  return host.kind == core::HostPattern::Kind::any ||
         host.kind == core::HostPattern::Kind::subdomains;
}

void describe_host(Flow& flow, const HttpHead& head) {
  if (!head.has_host) return;
  auto endpoint = core::parse_endpoint(head.host);
  flow.said_is_invalid = !endpoint || is_wildcard(endpoint->host);
  if (flow.said_is_invalid) return;
  flow.said = std::move(endpoint->host);
  flow.said_port = endpoint->port;
}

void describe_server_name(Flow& flow, const ClientHello& hello) {
  flow.encrypted_hello = hello.encrypted_hello;
  if (!hello.has_server_name) return;
  auto name = core::parse_host(hello.server_name);
  flow.said_is_invalid = !name || is_wildcard(*name);
  if (!flow.said_is_invalid) flow.said = *std::move(name);
}

}  // namespace

std::size_t postgres_request_size(std::string_view bytes) {
  for (const std::string_view request : postgres_requests) {
    if (bytes.starts_with(request)) return request.size();
  }
  return 0;
}

bool is_in_doubt(const Opening& opening) {
  const std::string_view bytes = opening.bytes;
  if (may_become_postgres_request(bytes)) return true;
  if (read_client_hello(bytes_of(bytes)).progress != Progress::other) return false;
  // Servers skip empty lines before a request.
  const std::string_view line =
      bytes.substr(std::min(bytes.find_first_not_of("\r\n"), bytes.size()));
  // The first whole line tells what it is, and what is a request may name its host in the next one.
  return line.empty() || (!line.contains('\n') && !may_begin_with_method(line));
}

bool recognise(Opening& opening, std::size_t most_bytes) {
  if (opening.bytes.empty() || may_become_postgres_request(opening.bytes)) return false;
  HelloReading hello = read_client_hello(bytes_of(opening.bytes));
  if (hello.progress != Progress::other) {
    opening.hello = std::move(hello.hello);
    const bool too_long = hello.progress == Progress::more && opening.bytes.size() >= most_bytes;
    return settle(opening, Speech::tls, too_long ? Progress::malformed : hello.progress);
  }
  HeadReading head = read_http_head(opening.bytes, most_bytes);
  const bool is_no_line = opening.bytes.size() >= most_bytes && is_in_doubt(opening);
  if (head.progress == Progress::other || is_no_line) {
    return settle(opening, Speech::other, Progress::done);
  }
  opening.head = std::move(head.head);
  return settle(opening, Speech::http, head.progress);
}

Async<Heard> read_opening(Loop& loop, Socket& client, Opening& opening, const EgressLimits& limits,
                          Patience patience) {
  const auto whole = std::chrono::seconds(limits.hello_seconds);
  Time deadline = patience.is_limited ? loop.now() + whole : never;
  while (!recognise(opening, limits.head_bytes)) {
    const bool is_held_back = opening.bytes.size() > opening.passed;
    const bool is_told = patience.doubt == Doubt::tell_all ||
                         (patience.doubt == Doubt::tell && is_in_doubt(opening));
    if (is_held_back && is_told) co_return Heard::doubt;
    if (is_held_back) deadline = std::min(deadline, loop.now() + whole);
    std::array<char, 4096> chunk;
    const ssize_t size = co_await read_some(loop, client, chunk, deadline);
    if (size == taken_away) co_return Heard::taken_away;
    if (size == failed && loop.now() < deadline) co_return Heard::broken;
    if (size <= 0 && !opening.bytes.empty()) co_return Heard::part;
    if (size <= 0) co_return size == ended ? Heard::nothing : Heard::silent;
    opening.bytes.append(chunk.data(), static_cast<std::size_t>(size));
  }
  co_return Heard::all;
}

void describe(Flow& flow, const Opening& opening) {
  flow.speech = opening.speech;
  flow.said.reset();
  flow.said_port.reset();
  flow.said_is_invalid = false;
  switch (opening.speech) {
    case Speech::tls: describe_server_name(flow, opening.hello); break;
    case Speech::http:
      describe_host(flow, opening.head);
      flow.method = opening.head.method;
      flow.path = opening.head.path;
      flow.override_field = opening.head.override_field;
      break;
    case Speech::unknown:
    case Speech::other: break;
  }
}

}  // namespace capgate::egress
