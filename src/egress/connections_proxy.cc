// For programs that insist on a proxy: HTTP CONNECT, absolute-form HTTP and SOCKS5 on one port.
#include <array>

#include "base/format.h"
#include "egress/connections.h"
#include "egress/credential.h"
#include "egress/io.h"
#include "egress/socks.h"

namespace capgate::egress {
namespace {

constexpr std::uint16_t http_port = 80;
constexpr char socks_version = 5;
constexpr std::string_view unknown_client = "this client did not show the token of this proxy";

std::string http_answer(std::string_view status, std::string_view text,
                        std::string_view field = "") {
  return format(
      "HTTP/1.1 {}\r\n{}Content-Type: text/plain\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}\n",
      status, field, text.size() + 1, text);
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// What a proxy's client named: one place, with a port.
std::optional<core::Endpoint> parse_place(std::string_view text,
                                          std::optional<std::uint16_t> default_port) {
  auto endpoint = core::parse_endpoint(text);
  if (!endpoint) return std::nullopt;
  if (!endpoint->port) endpoint->port = default_port;
  using enum core::HostPattern::Kind;
  const bool is_one = endpoint->host.kind != any && endpoint->host.kind != subdomains;
  if (!is_one || !endpoint->port) return std::nullopt;
  return *std::move(endpoint);
}

}  // namespace

// A client that resolves by itself asks for the address that it was given.
core::HostPattern Connections::meant_by(const core::HostPattern& host, std::uint16_t port) {
  using enum core::HostPattern::Kind;
  return host.kind == ipv4 || host.kind == ipv6 ? host_behind(Address::of(host), port) : host;
}

Async<bool> Connections::answer(Socket& client, const Attempt& attempt, std::string_view http,
                                unsigned socks) {
  if (attempt.manner == Manner::none) co_return true;
  const std::string text = attempt.manner == Manner::socks
                               ? socks_answer(static_cast<SocksReply>(socks))
                               : std::string(http);
  const Time deadline = loop_.now() + std::chrono::seconds(policy_.limits.hello_seconds);
  co_return co_await write_all(loop_, client, text, deadline) >= 0;
}

// What it asks for is not looked at, so the line names nothing.
Async<bool> Connections::refuse_client(Socket& client, Manner manner) {
  Attempt nowhere = begin({}, 0, manner == Manner::socks ? "socks5" : "proxy");
  nowhere.record.host = "?";
  nowhere.manner = manner;
  refuse(nowhere, "no-token", unknown_client);
  if (manner == Manner::socks) co_return true;
  co_return co_await answer(
      client, nowhere,
      http_answer("407 Proxy Authentication Required", format("capgate: {}", unknown_client),
                  "Proxy-Authenticate: Basic realm=\"capgate\"\r\n"),
      0);
}

Async<std::optional<Connections::Attempt>> Connections::hear_http_proxy_client(Socket& client,
                                                                               std::string bytes) {
  const Time deadline = loop_.now() + std::chrono::seconds(policy_.limits.hello_seconds);
  HeadReading reading = read_http_head(bytes, policy_.limits.head_bytes);
  while (reading.progress == Progress::more) {
    std::array<char, 2048> chunk;
    const ssize_t size = co_await read_some(loop_, client, chunk, deadline);
    if (size <= 0) co_return std::nullopt;
    bytes.append(chunk.data(), static_cast<std::size_t>(size));
    reading = read_http_head(bytes, policy_.limits.head_bytes);
  }
  const HttpHead& head = reading.head;
  if (reading.progress == Progress::done && !policy_.proxy_credential.empty() &&
      !shows_credential(policy_.proxy_credential, head.proxy_authorization)) {
    co_await refuse_client(client, Manner::http);
    co_return std::nullopt;
  }
  const bool connects = head.method == "CONNECT";
  const auto place =
      reading.progress == Progress::done
          ? parse_place(head.authority, connects ? std::optional<std::uint16_t>() : http_port)
          : std::nullopt;
  if (!place) {
    Attempt nowhere = begin({}, 0, "proxy");
    nowhere.record.host = "?";
    nowhere.manner = Manner::http;
    refuse(nowhere, "malformed", "the proxy was asked for no endpoint that can be read");
    co_await answer(client, nowhere,
                    http_answer("400 Bad Request",
                                "capgate: ask for http://HOST/ or CONNECT "
                                "HOST:PORT"),
                    0);
    co_return std::nullopt;
  }
  Attempt attempt =
      begin(meant_by(place->host, *place->port), *place->port, connects ? "connect" : "http-proxy");
  attempt.manner = Manner::http;
  if (connects) {
    attempt.opening.bytes = bytes.substr(head.size);
  } else {
    attempt.is_proxied_http = true;
    attempt.opening = {.bytes = std::move(bytes), .speech = Speech::http, .head = reading.head};
    describe(attempt.flow, attempt.opening);
  }
  co_return attempt;
}

// Appends what comes next. False: the client left or took too long.
Async<bool> Connections::read_more(Socket& client, std::string& bytes, Time deadline) {
  std::array<char, 512> chunk;
  const ssize_t size = co_await read_some(loop_, client, chunk, deadline);
  if (size > 0) bytes.append(chunk.data(), static_cast<std::size_t>(size));
  co_return size > 0;
}

// The greeting, and the password where one is asked for. False: it ended here.
Async<bool> Connections::greet_socks_client(Socket& client, std::string& bytes, Time deadline) {
  SocksGreeting greeting = read_socks_greeting(bytes_of(bytes));
  while (greeting.progress == Progress::more) {
    if (!co_await read_more(client, bytes, deadline)) co_return false;
    greeting = read_socks_greeting(bytes_of(bytes));
  }
  if (greeting.progress != Progress::done) co_return false;
  bytes.erase(0, greeting.size);
  const bool asks = !policy_.proxy_credential.empty();
  const bool is_offered = asks ? greeting.with_password : greeting.without_authentication;
  const std::string_view method(!is_offered ? "\x05\xff" : asks ? "\x05\x02" : "\x05\x00", 2);
  if (co_await write_all(loop_, client, method, deadline) < 0) co_return false;
  if (!is_offered && asks) co_await refuse_client(client, Manner::socks);
  if (!is_offered || !asks) co_return is_offered;

  SocksPassword shown = read_socks_password(bytes_of(bytes));
  while (shown.progress == Progress::more) {
    if (!co_await read_more(client, bytes, deadline)) co_return false;
    shown = read_socks_password(bytes_of(bytes));
  }
  if (shown.progress != Progress::done) co_return false;
  bytes.erase(0, shown.size);
  const bool is_known =
      is_same_credential(proxy_credential(shown.user, shown.password), policy_.proxy_credential);
  if (!is_known) co_await refuse_client(client, Manner::socks);
  const std::string_view status(is_known ? "\x01\x00" : "\x01\x01", 2);
  co_return co_await write_all(loop_, client, status, deadline) >= 0 && is_known;
}

Async<std::optional<Connections::Attempt>> Connections::hear_socks_client(Socket& client,
                                                                          std::string bytes) {
  const Time deadline = loop_.now() + std::chrono::seconds(policy_.limits.hello_seconds);
  if (!co_await greet_socks_client(client, bytes, deadline)) co_return std::nullopt;
  for (;;) {
    const SocksRequest request = read_socks_request(bytes_of(bytes));
    if (request.progress == Progress::done) {
      const auto host = core::parse_host(request.host);
      Attempt attempt =
          begin(host ? meant_by(*host, request.port) : core::HostPattern{}, request.port, "socks5");
      attempt.manner = Manner::socks;
      using enum core::HostPattern::Kind;
      const bool is_one = host && host->kind != any && host->kind != subdomains;
      if (request.problem != SocksReply::succeeded || !is_one) {
        attempt.record.host = request.host;
        refuse(attempt, "malformed", "SOCKS5 was asked for something that is not served");
        const SocksReply reply = is_one ? request.problem : SocksReply::address_type_not_supported;
        co_await answer(client, attempt, "", static_cast<unsigned>(reply));
        co_return std::nullopt;
      }
      attempt.opening.bytes = bytes.substr(request.size);
      co_return attempt;
    }
    if (request.progress != Progress::more) co_return std::nullopt;
    if (!co_await read_more(client, bytes, deadline)) co_return std::nullopt;
  }
}

Async<std::optional<Connections::Attempt>> Connections::hear_proxy_client(Socket& client) {
  std::array<char, 2048> chunk;
  const Time deadline = loop_.now() + std::chrono::seconds(policy_.limits.hello_seconds);
  const ssize_t size = co_await read_some(loop_, client, chunk, deadline);
  if (size <= 0) co_return std::nullopt;
  std::string bytes(chunk.data(), static_cast<std::size_t>(size));
  if (bytes.front() == socks_version) {
    co_return co_await hear_socks_client(client, std::move(bytes));
  }
  co_return co_await hear_http_proxy_client(client, std::move(bytes));
}

// Short, and nothing is in the way of it.
Async<bool> Connections::answer_connected(Socket& client, const Attempt& attempt) {
  return answer(client, attempt, "HTTP/1.1 200 Connection established\r\n\r\n",
                static_cast<unsigned>(SocksReply::succeeded));
}

Task Connections::proxied(SocketPtr client) {
  Counted counted(opening_);
  std::optional<Attempt> attempt = co_await hear_proxy_client(*client);
  if (!attempt) co_return;
  if (!is_allowed(*attempt)) {
    const std::string would = remedy(attempt->verdict, attempt->flow);
    const std::string text = format("capgate: {}{}{}", explain(attempt->verdict, attempt->flow),
                                    would.empty() ? "" : "; it takes ", would);
    co_await answer(*client, *attempt, http_answer("403 Forbidden", text),
                    static_cast<unsigned>(SocksReply::not_allowed));
    co_return;
  }
  // Its hello says whether it can have a connection that is kept, and it waits for our answer.
  const bool is_answered = !attempt->is_proxied_http && may_have_kept(*attempt);
  if (is_answered && !co_await answer_connected(*client, *attempt)) co_return;
  Dialled origin = is_answered ? co_await admit(*client, *attempt) : co_await open(*attempt);
  if (!origin.socket && is_answered) co_return reset_on_close(*client);
  if (!origin.socket) {
    co_await answer(*client, *attempt,
                    http_answer("502 Bad Gateway", "capgate: the origin was not reached"),
                    static_cast<unsigned>(SocksReply::host_unreachable));
    co_return;
  }
  counted.done();
  if (!is_answered && !attempt->is_proxied_http && !co_await answer_connected(*client, *attempt)) {
    journal_.close(attempt->record, 0, 0, ending_name(Ending::failed));
    co_return;
  }
  co_await carry(std::move(client), std::move(origin.socket), *std::move(attempt));
}

}  // namespace capgate::egress
