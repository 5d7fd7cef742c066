#include <gtest/gtest.h>

#include "egress/connections.h"
#include "support/egress_stage.h"

namespace capgate::egress {
namespace {

using support::accept_from;
using support::end_of;
using support::finish_sending;
using support::has_caller;
using support::receive;
using support::send_text;

class HttpConnectionsTest : public support::EgressTest {
 protected:
  [[nodiscard]] std::string request(std::string_view line, std::string_view fields = "") const {
    return std::string(line) + " HTTP/1.1\r\nHost: localhost:" + port() + "\r\n" +
           std::string(fields) + "\r\n";
  }
  static constexpr std::string_view to_evil = "GET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n";
  static constexpr std::string_view ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
};

TEST_F(HttpConnectionsTest, PassesOneRequestAfterTheOther) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = captured();
  const std::string first = request("POST /1", "Content-Length: 4\r\n") + "body";
  const std::string second = request("POST /2", "Transfer-Encoding: chunked\r\n") +
                             "3\r\nabc\r\n0\r\n\r\n" + request("GET /3");
  play([&] {
    send_text(client, first);
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size()), first);
    send_text(server, ok);
    EXPECT_EQ(receive(client, ok.size()), ok);
    send_text(client, second);
    EXPECT_EQ(receive(server, second.size()), second);
    finish_sending(client);
    EXPECT_EQ(end_of(server), 0);
    finish_sending(server);
    EXPECT_EQ(end_of(client), 0);
  });
  EXPECT_FALSE(tells(R"("verdict":"denied")")) << log();
  EXPECT_TRUE(tells(R"("reason":"closed")")) << log();
  EXPECT_EQ(support::count_of(R"("protocol":"http")", log()), 2U) << log();
}

TEST_F(HttpConnectionsTest, RefusesAnotherHostAndStillDeliversTheFirstAnswer) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = captured();
  const std::string first = request("GET /1");
  play([&] {
    send_text(client, first + std::string(to_evil));
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size()), first);
    EXPECT_EQ(end_of(server), 0);
    send_text(server, ok);
    EXPECT_EQ(receive(client, ok.size()), ok);
    finish_sending(server);
    (void)end_of(client);
  });
  EXPECT_TRUE(tells(R"("reason":"other-name")")) << log();
}

TEST_F(HttpConnectionsTest, RefusesAnotherMethodLater) {
  begin({"localhost:@?proto=http&methods=GET"});
  const sys::Fd client = captured();
  const std::string first = request("GET /1");
  play([&] {
    send_text(client, first + request("DELETE /1"));
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size() + 1), first);
  });
  EXPECT_TRUE(tells(R"("reason":"other-method")")) << log();
}

TEST_F(HttpConnectionsTest, RefusesAnAbsoluteTargetAndConnectOutsideAProxy) {
  begin({"localhost:@?proto=http"});
  const sys::Fd absolute = captured();
  const sys::Fd connects = captured();
  play([&] {
    send_text(absolute, request("GET http://evil.test/"));
    EXPECT_EQ(end_of(absolute), ECONNRESET);
    send_text(connects, request("CONNECT localhost:" + port()));
    EXPECT_EQ(end_of(connects), ECONNRESET);
  });
  EXPECT_FALSE(has_caller(origin));
}

TEST_F(HttpConnectionsTest, RefusesAMalformedBody) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = captured();
  const std::string head = request("POST /", "Transfer-Encoding: chunked\r\n");
  play([&] {
    send_text(client, head + "3\nabc");
    const sys::Fd server = accept_from(origin);
    EXPECT_LE(receive(server, head.size() + 1).size(), head.size());
    EXPECT_EQ(end_of(client), ECONNRESET);
  });
  EXPECT_TRUE(tells(R"("reason":"malformed")")) << log();
}

// A program that closes with an answer unread resets the connection: nothing was refused.
TEST_F(HttpConnectionsTest, TellsOfNoRefusalWhenTheClientBreaksOff) {
  begin({"localhost:@?proto=http"});
  sys::Fd client = captured();
  const std::string first = request("GET /1");
  play([&] {
    send_text(client, first);
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size()), first);
    support::reset(client);
    EXPECT_EQ(end_of(server), ECONNRESET);
  });
  EXPECT_FALSE(tells(R"("verdict":"denied")")) << log();
  EXPECT_TRUE(tells(R"("reason":"broken-off")")) << log();
}

TEST_F(HttpConnectionsTest, EndsAtTheByteLimitWithinABody) {
  policy.limits.bytes = 1'000'000;
  begin({"localhost:@?proto=http"});
  const sys::Fd client = captured();
  const std::string head = request("POST /", "Content-Length: 100000000\r\n");
  play([&] {
    send_text(client, head);
    const sys::Fd server = accept_from(origin);
    std::thread sender([&] { EXPECT_FALSE(send_text(client, std::string(100'000'000, 'x'))); });
    EXPECT_LT(support::receive_all(server).size(), 10'000'000U);
    sender.join();
  });
  EXPECT_TRUE(tells(R"("reason":"limit")")) << log();
}

// ---- Upgrades --------------------------------------------------------------------------------

constexpr std::string_view upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
constexpr std::string_view agreed =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

TEST_F(HttpConnectionsTest, LetsAWebSocketThrough) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = captured();
  const std::string first = request("GET /socket", upgrade);
  play([&] {
    send_text(client, first + "early");
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size()), first);
    EXPECT_FALSE(support::has_event(server, POLLIN));  // until the origin agrees
    send_text(server, agreed);
    EXPECT_EQ(receive(client, agreed.size()), agreed);
    EXPECT_EQ(receive(server, 5), "early");
    send_text(client, to_evil);  // no longer HTTP
    EXPECT_EQ(receive(server, to_evil.size()), to_evil);
    send_text(server, "frame");
    EXPECT_EQ(receive(client, 5), "frame");
  });
  EXPECT_FALSE(tells(R"("verdict":"denied")")) << log();
}

TEST_F(HttpConnectionsTest, StaysWithHttpWhenTheOriginDoesNotAgree) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = captured();
  const std::string first = request("GET /socket", upgrade);
  const std::string second = request("GET /2");
  play([&] {
    send_text(client, first);
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size()), first);
    send_text(server, ok);
    EXPECT_EQ(receive(client, ok.size()), ok);
    send_text(client, second);
    EXPECT_EQ(receive(server, second.size()), second);
    send_text(client, to_evil);
    EXPECT_EQ(end_of(server), 0);
  });
  EXPECT_TRUE(tells(R"("reason":"other-name")")) << log();
}

TEST_F(HttpConnectionsTest, RefusesToBecomeHttp2) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = captured();
  const std::string first =
      request("GET /", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n");
  play([&] {
    send_text(client, first);
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size()), first);
    send_text(server, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n");
    EXPECT_EQ(end_of(client), ECONNRESET);
    EXPECT_EQ(end_of(server), ECONNRESET);
  });
  EXPECT_TRUE(tells("no WebSocket")) << log();
}

// Some clients offer HTTP/2 with every first request; an origin answers when it has all of it.
TEST_F(HttpConnectionsTest, PassesTheBodyOfARequestThatOffersAnUpgrade) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = captured();
  const std::string first =
      request("POST /", "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 4\r\n") + "body";
  play([&] {
    send_text(client, first);
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size()), first);
    send_text(server, ok);
    EXPECT_EQ(receive(client, ok.size()), ok);
    send_text(client, to_evil);
    EXPECT_EQ(end_of(server), 0);
  });
}

TEST_F(HttpConnectionsTest, RefusesAnUpgradeLater) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = captured();
  const std::string first = request("GET /1");
  play([&] {
    send_text(client, first + request("GET /2", upgrade));
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size() + 1), first);
    EXPECT_EQ(end_of(client), ECONNRESET);
  });
  EXPECT_TRUE(tells("an upgrade of a connection in use")) << log();
}

}  // namespace
}  // namespace capgate::egress
