// How terminated connections end: by limits, and at whatever they wait for.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "secrets/renewal.h"
#include "support/tls_stage.h"

namespace capgate::seal {
namespace {

using support::accept_from;
using support::has_event;
using support::receive;
using support::send_text;
using support::TlsPeer;

class TerminatorEnd : public support::TlsStage {
 protected:
  struct Peers {
    sys::Fd accepted;
    std::optional<TlsPeer> client;
    std::optional<TlsPeer> server;
  };
  // Both handshakes are over.
  Peers meet(const sys::Fd& socket, std::string_view protocols = {}, std::string protocol = {}) {
    Peers out;
    std::thread origin_side([&] {
      out.accepted = accept_from(origin);
      out.server.emplace(TlsPeer::server(out.accepted, outer_, std::move(protocol)));
    });
    out.client.emplace(TlsPeer::client(socket, inner_, protocols));
    origin_side.join();
    EXPECT_TRUE(out.client->shaken && out.server->shaken);
    return out;
  }
};

TEST_F(TerminatorEnd, WhenTheBytesAreUsedUp) {
  policy.limits.bytes = 1U << 20U;
  begin_sealed();
  const sys::Fd socket = captured();
  std::size_t received = 0;
  play([&] {
    Peers peers = meet(socket);
    peers.client->say(request("GET /"));
    (void)peers.server->hear("\r\n\r\n");
    std::thread origin_side([&] {
      peers.server->say("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
      const std::string part(16384, 'x');
      while (SSL_write(peers.server->ssl(), part.data(), 16384) > 0) {
      }
    });
    std::array<char, 16384> buffer;
    for (int size = 1; size > 0; received += static_cast<std::size_t>(std::max(size, 0))) {
      size = SSL_read(peers.client->ssl(), buffer.data(), buffer.size());
    }
    origin_side.join();
  });
  EXPECT_LT(received, 40U << 20U);
  EXPECT_TRUE(tells(R"("reason":"limit")")) << log();
  EXPECT_TRUE(tells("used up its bytes")) << log();
}

TEST_F(TerminatorEnd, NoRequestLeavesWhenTheAuditLogIsFull) {
  begin_sealed();
  const sys::Fd first = captured();
  const sys::Fd second = captured();
  play([&] {
    Peers one = meet(first);
    Peers other = meet(second);
    ASSERT_EQ(::fcntl(audit.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
    // The line of this one is the first that cannot be written.
    one.client->say(request("GET /first"));
    EXPECT_TRUE(one.server->hear("\r\n\r\n").starts_with("GET /first"));
    one.server->say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(one.client->hear("\r\n"), "");

    other.client->say(request("GET /second"));
    EXPECT_EQ(other.client->hear("\r\n"), "HTTP/1.1 503 Service Unavailable\r\n");
    EXPECT_FALSE(has_event(other.accepted, POLLIN));
  });
}

enum class At : unsigned char {
  origin_handshake,
  client_handshake,
  certificate,
  first_request,
  request_body,
  answer_body,
  renewal,
  http2,
};
enum class By : unsigned char { broker, client, origin, idle };

class TerminatorEndAt : public TerminatorEnd,
                        public testing::WithParamInterface<std::tuple<At, By>> {
 protected:
  Peers reach(At at, const sys::Fd& socket) {
    switch (at) {
      case At::origin_handshake: {
        send_text(socket, support::real_hello());
        Peers out{.accepted = accept_from(origin)};
        EXPECT_EQ(receive(out.accepted, 1).size(), 1U);
        return out;
      }
      case At::client_handshake: {
        send_text(socket, support::real_hello());
        Peers out{.accepted = accept_from(origin)};
        out.server.emplace(TlsPeer::server(out.accepted, outer_));
        EXPECT_EQ(receive(socket, 1).size(), 1U);
        return out;
      }
      case At::certificate: {
        send_text(socket, support::real_hello());
        {
          const sys::Fd first = accept_from(origin);
          EXPECT_FALSE(TlsPeer::server(first, stranger_).shaken);
        }
        Peers out{.accepted = accept_from(origin)};
        EXPECT_EQ(receive(out.accepted, 1).size(), 1U);
        return out;
      }
      case At::http2: {
        Peers out = meet(socket, std::string_view("\x02h2", 3), "h2");
        EXPECT_EQ(out.server->hear("\r\n"), "PRI * HTTP/2.0\r\n");
        return out;
      }
      case At::first_request:
      case At::request_body:
      case At::answer_body:
      case At::renewal: break;
    }
    return reach_request(at, meet(socket));
  }
  Peers reach_request(At at, Peers out) {
    if (at == At::first_request) return out;
    if (at == At::request_body) {
      out.client->say(request("POST /", "Content-Length: 10\r\n") + "abc");
      EXPECT_TRUE(out.server->hear("abc").ends_with("abc"));
      return out;
    }
    out.client->say(request(
        "GET /", "Authorization: Bearer " + std::string(support::token_placeholder) + "\r\n"));
    if (at == At::renewal) {
      secrets::RenewalRequest asked;
      EXPECT_EQ(::recv(renewer_.first.get(), &asked, sizeof(asked), 0), sizeof(asked));
      return out;
    }
    EXPECT_TRUE(out.server->hear("\r\n\r\n").contains(support::token_value));
    out.server->say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    EXPECT_TRUE(out.client->hear("abc").ends_with("abc"));
    return out;
  }

  Authority stranger_ = support::authority_for("localhost");
  support::Pair renewer_ = support::unix_pair();
};

// Nothing is touched after it (the sanitizer sees that), and nothing is left behind.
TEST_P(TerminatorEndAt, IsClean) {
  const auto [at, by] = GetParam();
  if (by == By::idle) policy.limits.idle_seconds = 1;
  if (at == At::renewal) {
    begin_sealed("", 1, support::without_blocking(std::move(renewer_.second)));
  } else {
    begin_sealed();
  }
  sys::Fd socket = captured();
  play([&] {
    Peers peers = reach(at, socket);
    constexpr int enough = 300;
    if (by == By::client) {
      support::reset(socket);
      (void)has_event(peers.accepted, POLLHUP, enough);
    } else if (by == By::origin) {
      support::reset(peers.accepted);
      (void)has_event(socket, POLLHUP, enough);
    } else if (by == By::idle) {
      EXPECT_TRUE(has_event(socket, POLLHUP, support::patience_seconds * 1000));
    }
  });
  if (by == By::idle) EXPECT_TRUE(tells(R"("reason":"idle")")) << log();
}

INSTANTIATE_TEST_SUITE_P(All, TerminatorEndAt,
                         testing::Combine(testing::Values(At::origin_handshake,
                                                          At::client_handshake, At::certificate,
                                                          At::first_request, At::request_body,
                                                          At::answer_body, At::renewal, At::http2),
                                          testing::Values(By::broker, By::client, By::origin)));

// They take a second each.
INSTANTIATE_TEST_SUITE_P(Idle, TerminatorEndAt,
                         testing::Combine(testing::Values(At::certificate, At::answer_body,
                                                          At::renewal),
                                          testing::Values(By::idle)));

}  // namespace
}  // namespace capgate::seal
