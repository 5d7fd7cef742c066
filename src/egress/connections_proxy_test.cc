#include <gtest/gtest.h>

#include "base/digest.h"
#include "egress/connections.h"
#include "egress/credential.h"
#include "egress/socks.h"
#include "support/egress_stage.h"

namespace capgate::egress {
namespace {

using support::accept_from;
using support::end_of;
using support::finish_sending;
using support::has_caller;
using support::hello_to;
using support::receive;
using support::receive_all;
using support::send_text;

constexpr std::string_view established = "HTTP/1.1 200 Connection established\r\n\r\n";

class ProxyConnectionsTest : public support::EgressTest {
 protected:
  // A CONNECT for a name, as SOCKS5 writes it.
  static std::string socks_request(std::string_view host, std::uint16_t number, char command = 1) {
    std::string out = {5, command, 0, 3, static_cast<char>(host.size())};
    out += host;
    out += {static_cast<char>(number >> 8U), static_cast<char>(number)};
    return out;
  }
  static constexpr std::string_view greeting{"\x05\x01\x00", 3};
};

// ---- CONNECT ---------------------------------------------------------------------------------

TEST_F(ProxyConnectionsTest, ConnectsAndLooksAtTheHello) {
  begin({"localhost:@"});
  const sys::Fd good = proxied();
  const sys::Fd bad = proxied();
  const std::string hello = hello_to("localhost");
  const std::string asked =
      "CONNECT localhost:" + port() + " HTTP/1.1\r\nHost: localhost:" + port() + "\r\n\r\n";
  play([&] {
    send_text(good, asked + hello);  // without waiting for the answer
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(good, established.size()), established);
    EXPECT_EQ(receive(server, hello.size()), hello);
    send_text(bad, asked);
    const sys::Fd other = accept_from(origin);
    EXPECT_EQ(receive(bad, established.size()), established);
    send_text(bad, hello_to("evil.test"));
    EXPECT_EQ(end_of(other), ECONNRESET);
    EXPECT_EQ(end_of(bad), ECONNRESET);
  });
  EXPECT_TRUE(tells(R"("reason":"other-name")")) << log();
}

TEST_F(ProxyConnectionsTest, WaitsForTheHelloWhereTheClientMustSpeak) {
  begin({"localhost:@?proto=tls"});
  const sys::Fd client = proxied();
  play([&] {
    send_text(client, "CONNECT localhost:" + port() + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(receive(client, established.size()), established);
    const sys::Fd server = accept_from(origin);
    send_text(client, "SSH-2.0-x\r\n");
    EXPECT_EQ(end_of(server), ECONNRESET);
  });
  EXPECT_TRUE(tells(R"("reason":"not-spoken-here")")) << log();
}

TEST_F(ProxyConnectionsTest, AnswersWhatItRefuses) {
  const support::TcpListener nobody = support::closed_port();
  begin({"localhost:" + std::to_string(nobody.port)});
  const sys::Fd elsewhere = proxied();
  const sys::Fd nowhere = proxied();
  const sys::Fd unreachable = proxied();
  play([&] {
    send_text(elsewhere, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n");
    EXPECT_TRUE(receive_all(elsewhere).starts_with("HTTP/1.1 403 Forbidden\r\n"));
    send_text(nowhere, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(receive_all(nowhere).starts_with("HTTP/1.1 400 Bad Request\r\n"));
    send_text(unreachable,
              "CONNECT localhost:" + std::to_string(nobody.port) + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(receive_all(unreachable).starts_with("HTTP/1.1 502 Bad Gateway\r\n"));
  });
  EXPECT_FALSE(has_caller(origin));
  EXPECT_TRUE(tells(R"("reason":"no-rule")")) << log();
}

// ---- Absolute targets ------------------------------------------------------------------------

TEST_F(ProxyConnectionsTest, WritesAbsoluteTargetsAnew) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = proxied();
  const std::string place = "localhost:" + port();
  const std::string host = "Host: " + place + "\r\n";
  play([&] {
    send_text(client, "GET http://" + place + "/a?b HTTP/1.1\r\n" + host +
                          "Proxy-Authorization: Basic eA==\r\n\r\n");
    const sys::Fd server = accept_from(origin);
    const std::string expected = "GET /a?b HTTP/1.1\r\n" + host + "\r\n";
    EXPECT_EQ(receive(server, expected.size()), expected);
    send_text(client, "GET http://" + place + "/2 HTTP/1.1\r\n" + host + "\r\n");
    const std::string second = "GET /2 HTTP/1.1\r\n" + host + "\r\n";
    EXPECT_EQ(receive(server, second.size()), second);
    // Allowed, but another place than the one that this connection leads to.
    send_text(client, "GET http://localhost:1/ HTTP/1.1\r\nHost: localhost:1\r\n\r\n");
    EXPECT_EQ(end_of(server), 0);
  });
  EXPECT_TRUE(tells(R"("verdict":"denied")")) << log();
}

TEST_F(ProxyConnectionsTest, RefusesAnAbsoluteTargetThatHostContradicts) {
  begin({"localhost:@?proto=http"});
  const sys::Fd client = proxied();
  play([&] {
    send_text(client, "GET http://localhost:" + port() + "/ HTTP/1.1\r\nHost: evil.test\r\n\r\n");
    EXPECT_TRUE(receive_all(client).starts_with("HTTP/1.1 403 "));
  });
  EXPECT_FALSE(has_caller(origin));
}

// ---- SOCKS5 ----------------------------------------------------------------------------------

TEST_F(ProxyConnectionsTest, ServesSocks) {
  begin({"localhost:@"});
  const sys::Fd client = proxied();
  play([&] {
    send_text(client, greeting);
    EXPECT_EQ(receive(client, 2), std::string_view("\x05\x00", 2));
    send_text(client, socks_request("localhost", origin.port));
    EXPECT_EQ(receive(client, 10), socks_answer(SocksReply::succeeded));
    const sys::Fd server = accept_from(origin);
    send_text(server, "banner");
    EXPECT_EQ(receive(client, 6), "banner");
    send_text(client, "PING\r\n");
    EXPECT_EQ(receive(server, 6), "PING\r\n");
    finish_sending(client);
    EXPECT_EQ(end_of(server), 0);
  });
  EXPECT_TRUE(tells(R"("protocol":"socks5")")) << log();
}

TEST_F(ProxyConnectionsTest, ServesSocksInOneGo) {
  begin({"localhost:@"});
  const sys::Fd client = proxied();
  play([&] {
    send_text(client, std::string(greeting) + socks_request("localhost", origin.port) + "PING\r\n");
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, 6), "PING\r\n");
  });
}

TEST_F(ProxyConnectionsTest, AnswersWhatSocksIsRefused) {
  begin({"localhost:@"});
  const sys::Fd elsewhere = proxied();
  const sys::Fd bound = proxied();
  const sys::Fd wild = proxied();
  const sys::Fd secret = proxied();
  play([&] {
    send_text(elsewhere, std::string(greeting) + socks_request("evil.test", 443));
    EXPECT_EQ(receive_all(elsewhere).substr(2), socks_answer(SocksReply::not_allowed));
    send_text(bound, std::string(greeting) + socks_request("localhost", origin.port, 2));
    EXPECT_EQ(receive_all(bound).substr(2), socks_answer(SocksReply::command_not_supported));
    send_text(wild, std::string(greeting) + socks_request("*", origin.port));
    EXPECT_EQ(receive_all(wild).substr(2), socks_answer(SocksReply::address_type_not_supported));
    send_text(secret, "\x05\x01\x02");
    EXPECT_EQ(receive_all(secret), "\x05\xff");
  });
  EXPECT_FALSE(has_caller(origin));
}

// ---- A port that others can reach, too -------------------------------------------------------

class ProxyTokenTest : public ProxyConnectionsTest {
 protected:
  void SetUp() override {
    begin({"localhost:@"});
    policy.proxy_credential = proxy_credential(proxy_user, "right");
  }
  static std::string password(std::string_view token) {
    std::string out = {1, 7};
    out += proxy_user;
    out += static_cast<char>(token.size());
    out += token;
    return out;
  }
  [[nodiscard]] std::string connect(const std::string& fields) const {
    return "CONNECT localhost:" + port() + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
  }
  static std::string basic(std::string_view user_and_token) {
    return "Proxy-Authorization: Basic " + base64(user_and_token) + "\r\n";
  }
};

TEST_F(ProxyTokenTest, IsAskedForBeforeAnythingIsLookedAt) {
  const sys::Fd nothing = proxied();
  const sys::Fd wrong = proxied();
  const sys::Fd twice = proxied();
  const sys::Fd right = proxied();
  play([&] {
    for (const auto& [client, fields] :
         {std::pair(&nothing, std::string()), std::pair(&wrong, basic("capgate:wrong")),
          std::pair(&twice, basic("capgate:right") + basic("capgate:right"))}) {
      send_text(*client, connect(fields));
      const std::string answer = receive_all(*client);
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 407 ")) << answer;
      EXPECT_TRUE(answer.contains("Proxy-Authenticate: Basic ")) << answer;
    }
    EXPECT_FALSE(has_caller(origin));
    send_text(right, connect(basic("capgate:right")) + "PING\r\n");
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, 6), "PING\r\n");
  });
  EXPECT_EQ(support::count_of(R"("reason":"no-token")", log()), 3U) << log();
  EXPECT_FALSE(tells("wrong")) << log();
}

TEST_F(ProxyTokenTest, IsThePasswordOfSocks) {
  const sys::Fd without = proxied();
  const sys::Fd wrong = proxied();
  const sys::Fd right = proxied();
  const std::string offer("\x05\x02\x00\x02", 4);
  play([&] {
    send_text(without, std::string(greeting) + socks_request("localhost", origin.port));
    EXPECT_EQ(receive_all(without), "\x05\xff");
    send_text(wrong, offer + password("wrong") + socks_request("localhost", origin.port));
    EXPECT_EQ(receive_all(wrong), "\x05\x02\x01\x01");
    EXPECT_FALSE(has_caller(origin));
    send_text(right, offer);
    EXPECT_EQ(receive(right, 2), "\x05\x02");
    send_text(right, password("right"));
    EXPECT_EQ(receive(right, 2), std::string_view("\x01\x00", 2));
    send_text(right, socks_request("localhost", origin.port));
    EXPECT_EQ(receive(right, 10), socks_answer(SocksReply::succeeded));
  });
  EXPECT_EQ(support::count_of(R"("reason":"no-token")", log()), 2U) << log();
}

TEST_F(ProxyConnectionsTest, ForgetsWhoNeverAsks) {
  policy.limits.hello_seconds = 1;
  begin({"localhost:@"});
  const sys::Fd silent = proxied();
  const sys::Fd slow = proxied();
  play([&] {
    send_text(slow, "CONNECT ");
    EXPECT_EQ(end_of(silent), 0);
    EXPECT_EQ(end_of(slow), 0);
  });
}

}  // namespace
}  // namespace capgate::egress
