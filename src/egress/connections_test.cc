#include "egress/connections.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "support/egress_stage.h"

namespace capgate::egress {
namespace {

using support::accept_from;
using support::end_of;
using support::finish_sending;
using support::has_caller;
using support::hello_to;
using support::receive;
using support::send_text;

using ConnectionsTest = support::EgressTest;

// ---- Where -----------------------------------------------------------------------------------

TEST_F(ConnectionsTest, ResetsWhatNoRuleCovers) {
  begin({"localhost:1"});
  const sys::Fd client = captured();
  play([&] { EXPECT_EQ(end_of(client), ECONNRESET); });
  EXPECT_FALSE(has_caller(origin));
  EXPECT_TRUE(tells(R"("reason":"no-rule")")) << log();
}

TEST_F(ConnectionsTest, ResetsWhatCannotBeReached) {
  const support::TcpListener nobody = support::closed_port();
  begin({"127.0.0.1:" + std::to_string(nobody.port)});
  const sys::Fd client = captured(nobody.port);
  play([&] { EXPECT_EQ(end_of(client), ECONNRESET); });
  EXPECT_TRUE(tells("unreachable: Connection refused")) << log();
}

TEST_F(ConnectionsTest, DialsNothingThatTheLogDoesNotTell) {
  ASSERT_EQ(::fcntl(audit.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  begin({"localhost:@?proto=tcp"});
  const sys::Fd client = captured();
  play([&] { EXPECT_EQ(end_of(client), ECONNRESET); });
  EXPECT_FALSE(has_caller(origin));
  EXPECT_EQ(log(), "");
  EXPECT_NE(support::text_of(diagnostics).find("audit log cannot be written"), std::string::npos);
}

// ---- What is said ----------------------------------------------------------------------------

TEST_F(ConnectionsTest, ResetsAnotherServerNameBeforeItDials) {
  begin({"localhost:@?proto=tls"});
  const sys::Fd client = captured();
  play([&] {
    send_text(client, hello_to("evil.test"));
    EXPECT_EQ(end_of(client), ECONNRESET);
  });
  EXPECT_FALSE(has_caller(origin));
  EXPECT_TRUE(tells(R"("reason":"other-name")")) << log();
  EXPECT_FALSE(tells(R"("verdict":"allowed")")) << log();
}

TEST_F(ConnectionsTest, PassesTheRightServerNameUntouched) {
  begin({"localhost:@?proto=tls"});
  const sys::Fd client = captured();
  const std::string hello = hello_to("localhost");
  play([&] {
    send_text(client, hello.substr(0, 20));
    EXPECT_FALSE(has_caller(origin));
    send_text(client, hello.substr(20) + "and more");
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, hello.size() + 8), hello + "and more");
    send_text(server, "answer");
    EXPECT_EQ(receive(client, 6), "answer");
    finish_sending(client);
    EXPECT_EQ(end_of(server), 0);
  });
  EXPECT_TRUE(tells(R"("verdict":"allowed")")) << log();
  EXPECT_TRUE(tells(R"("received":6)")) << log();
  EXPECT_EQ(support::count_of(R"("protocol":"tls")", log()), 2U) << log();
}

TEST_F(ConnectionsTest, RefusesWhoSaysNothingWhereTheClientMustSpeak) {
  policy.limits.hello_seconds = 1;
  begin({"localhost:443"});
  const sys::Fd client = captured(443);
  play([&] { EXPECT_EQ(end_of(client), ECONNRESET); });
  EXPECT_TRUE(tells(R"("reason":"silent")")) << log();
}

// A client that tries two addresses leaves the one that answered later.
TEST_F(ConnectionsTest, DoesNotAccuseWhoLeavesWithoutAWord) {
  begin({"localhost:443"});
  const sys::Fd client = captured(443);
  play([&] {
    finish_sending(client);
    (void)end_of(client);
  });
  EXPECT_FALSE(tells(R"("verdict":"denied")")) << log();
  EXPECT_TRUE(tells("left without a word")) << log();
}

TEST_F(ConnectionsTest, RefusesHalfAHelloWhereTheClientMustSpeak) {
  begin({"localhost:@?proto=tls"});
  const sys::Fd client = captured();
  play([&] {
    send_text(client, hello_to("localhost").substr(0, 40));
    finish_sending(client);
    EXPECT_EQ(end_of(client), ECONNRESET);
  });
  EXPECT_FALSE(has_caller(origin));
  EXPECT_TRUE(tells(R"("reason":"silent")")) << log();
}

TEST_F(ConnectionsTest, LetsTheServerSpeakFirst) {
  begin({"localhost:@"});
  const sys::Fd client = captured();
  play([&] {
    const sys::Fd server = accept_from(origin);
    send_text(server, "220 ready\r\n");
    EXPECT_EQ(receive(client, 11), "220 ready\r\n");
    send_text(client, "EHLO x\r\n");
    EXPECT_EQ(receive(server, 8), "EHLO x\r\n");
    finish_sending(server);
    EXPECT_EQ(end_of(client), 0);
  });
}

TEST_F(ConnectionsTest, EndsInOrderWhenTheClientNeverSpoke) {
  begin({"localhost:@"});
  const sys::Fd client = captured();
  play([&] {
    const sys::Fd server = accept_from(origin);
    finish_sending(client);
    EXPECT_EQ(end_of(server), 0);
    send_text(server, "bye");
    finish_sending(server);
    EXPECT_EQ(receive(client, 4), "bye");
  });
  EXPECT_TRUE(tells(R"("reason":"closed")")) << log();
}

TEST_F(ConnectionsTest, LooksAtTheNameAlsoWhereOthersSpeakFirst) {
  begin({"localhost:@"});
  const sys::Fd client = captured();
  play([&] {
    const sys::Fd server = accept_from(origin);
    send_text(client, hello_to("evil.test"));
    EXPECT_EQ(end_of(server), ECONNRESET);
    EXPECT_EQ(end_of(client), ECONNRESET);
  });
  EXPECT_TRUE(tells(R"("reason":"other-name")")) << log();
}

TEST_F(ConnectionsTest, ComparesNothingWhereAnyNameMayBeSaid) {
  begin({"localhost:@?proto=tcp&sni=any"});
  const sys::Fd client = captured();
  const std::string hello = hello_to("evil.test");
  play([&] {
    const sys::Fd server = accept_from(origin);
    send_text(client, hello);
    EXPECT_EQ(receive(server, hello.size()), hello);
  });
}

// A hello in two parts with a pause between them must not pass unread.
TEST_F(ConnectionsTest, RefusesASlowHelloWhereNamesAreCompared) {
  policy.limits.hello_seconds = 1;
  begin({"localhost:@"});
  const sys::Fd client = captured();
  play([&] {
    const sys::Fd server = accept_from(origin);
    send_text(client, hello_to("evil.test").substr(0, 1));
    EXPECT_EQ(end_of(server), ECONNRESET);
    EXPECT_EQ(end_of(client), ECONNRESET);
  });
  EXPECT_TRUE(tells(R"("verdict":"denied")")) << log();
}

TEST_F(ConnectionsTest, RefusesASlowRequestWhereNamesAreCompared) {
  policy.limits.hello_seconds = 1;
  begin({"localhost:@"});
  const sys::Fd client = captured();
  play([&] {
    const sys::Fd server = accept_from(origin);
    send_text(client, "GET / HTTP/1.1\r\nHost: ");
    EXPECT_EQ(end_of(server), ECONNRESET);
  });
  EXPECT_TRUE(tells(R"("verdict":"denied")")) << log();
}

// Half a hello that will have no other half: an origin could still make something of it.
TEST_F(ConnectionsTest, RefusesAnOpeningThatEndsInTheMiddle) {
  begin({"localhost:@"});
  const sys::Fd client = captured();
  play([&] {
    const sys::Fd server = accept_from(origin);
    send_text(client, "GET / HTTP/1.1\r\nHost: evil.test\r\n");
    finish_sending(client);
    EXPECT_EQ(end_of(server), ECONNRESET);
  });
  EXPECT_TRUE(tells(R"("reason":"silent")")) << log();
}

TEST_F(ConnectionsTest, LetsASlowOneGoWhereNothingIsCompared) {
  policy.limits.hello_seconds = 1;
  begin({"localhost:@?sni=any"});
  const sys::Fd client = captured();
  play([&] {
    const sys::Fd server = accept_from(origin);
    send_text(client, "G");
    EXPECT_EQ(receive(server, 1), "G");
    send_text(client, "O");
    EXPECT_EQ(receive(server, 1), "O");
  });
}

// ---- PostgreSQL ------------------------------------------------------------------------------

constexpr std::string_view postgres_tls_request("\x00\x00\x00\x08\x04\xd2\x16\x2f", 8);

TEST_F(ConnectionsTest, LooksAtTheHelloAfterAPostgresRequest) {
  begin({"localhost:@"});
  const sys::Fd good = captured();
  const sys::Fd bad = captured();
  const std::string hello = hello_to("localhost");
  play([&] {
    for (const sys::Fd* client : {&good, &bad}) {
      const sys::Fd server = accept_from(origin);
      send_text(*client, postgres_tls_request);
      EXPECT_EQ(receive(server, 8), postgres_tls_request);
      send_text(server, "S");
      EXPECT_EQ(receive(*client, 1), "S");
      if (client == &good) {
        send_text(*client, hello);
        EXPECT_EQ(receive(server, hello.size()), hello);
      } else {
        send_text(*client, hello_to("evil.test"));
        EXPECT_EQ(end_of(server), ECONNRESET);
      }
    }
  });
  EXPECT_TRUE(tells(R"("reason":"other-name")")) << log();
}

TEST_F(ConnectionsTest, LooksAtTheHelloAfterAPostgresRequestInParts) {
  begin({"localhost:@"});
  const sys::Fd client = captured();
  play([&] {
    const sys::Fd server = accept_from(origin);
    send_text(client, postgres_tls_request.substr(0, 3));
    // The broker has read them once the origin's word has arrived.
    send_text(server, "x");
    EXPECT_EQ(receive(client, 1), "x");
    send_text(client, postgres_tls_request.substr(3));
    EXPECT_EQ(receive(server, 8), postgres_tls_request);
    send_text(client, hello_to("evil.test"));
    EXPECT_EQ(end_of(server), ECONNRESET);
  });
  EXPECT_TRUE(tells(R"("reason":"other-name")")) << log();
}

// ---- Endings ---------------------------------------------------------------------------------

TEST_F(ConnectionsTest, EndsWhateverItIsDoing) {
  begin({"localhost:@", "localhost:443"});
  std::vector<sys::Fd> clients;
  clients.push_back(captured(443));  // waits for a hello
  clients.push_back(captured());     // beside its origin
  clients.push_back(captured());     // in a request's body
  clients.push_back(captured());     // waits for the answer to an upgrade
  clients.push_back(captured());     // a tunnel
  clients.push_back(proxied());      // waits for a word
  clients.push_back(proxied());      // in a greeting
  std::vector<sys::Fd> servers;
  play([&] {
    for (int i = 0; i < 4; ++i) servers.push_back(accept_from(origin));
    const std::string host = "Host: localhost:" + port() + "\r\n";
    send_text(clients[2], "POST / HTTP/1.1\r\n" + host + "Content-Length: 9\r\n\r\nx");
    send_text(clients[3],
              "GET / HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    send_text(clients[4], "PING\r\n");
    send_text(clients[6], "\x05");
    for (const int i : {1, 2, 3}) {
      EXPECT_TRUE(support::has_event(servers[static_cast<std::size_t>(i)], POLLIN, 10'000)) << i;
    }
  });
  for (const sys::Fd& client : clients) EXPECT_NE(end_of(client), EAGAIN);
  EXPECT_EQ(support::count_of(R"("reason":"stopped")", log()), 4U) << log();
}

// ---- Published ports -------------------------------------------------------------------------

TEST_F(ConnectionsTest, LeadsInwards) {
  begin({});
  support::Pair pair = support::tcp_pair();
  connections->inbound(stage->adopt(std::move(pair.second)), origin.port, [](wire::Family family) {
    return sys::Fd(::socket(family == wire::Family::ipv4 ? AF_INET : AF_INET6,
                            SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  });
  play([&] {
    const sys::Fd server = accept_from(origin);
    send_text(pair.first, "hello");
    EXPECT_EQ(receive(server, 5), "hello");
  });
  EXPECT_TRUE(tells(R"("event":"inbound")")) << log();
  pair = {};
}

TEST_F(ConnectionsTest, ResetsInboundWhereNobodyListens) {
  begin({});
  support::Pair pair = support::tcp_pair();
  connections->inbound(stage->adopt(std::move(pair.second)), origin.port,
                       [](wire::Family) { return sys::Fd(); });
  play([&] { EXPECT_EQ(end_of(pair.first), ECONNRESET); });
  EXPECT_TRUE(tells("the server does not listen there")) << log();
}

}  // namespace
}  // namespace capgate::egress
