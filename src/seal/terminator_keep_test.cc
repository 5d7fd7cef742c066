// Clients one after the other, and how many connections the origin sees.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <functional>
#include <future>

#include "support/tls_stage.h"

namespace capgate::seal {
namespace {

using support::accept_from;
using support::end_of;
using support::receive;
using support::send_text;
using support::TlsPeer;

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// What the origin answers on one connection, in its order. Then it closes, or hears on first.
struct Served {
  std::vector<std::string> answers;
  enum class Then : unsigned char { hears, closes } then = Then::hears;
  std::promise<void>* closed = nullptr;  // told then
};

class TerminatorKeep : public support::TlsStage {
 protected:
  // The first lines that came, by connection.
  using Heard = std::vector<std::vector<std::string>>;
  std::thread serve(const std::vector<Served>& plan, Heard& heard, std::string protocol = {}) {
    heard.resize(plan.size());
    return std::thread([this, plan, &heard, protocol] {
      std::vector<std::thread> each;
      for (std::size_t i = 0; i < plan.size(); ++i) {
        auto accepted = std::make_shared<sys::Fd>(accept_from(origin));
        each.emplace_back([&, i, accepted] { serve_one(*accepted, plan[i], heard[i], protocol); });
      }
      for (std::thread& one : each) one.join();
    });
  }
  void serve_one(const sys::Fd& accepted, const Served& served, std::vector<std::string>& lines,
                 const std::string& protocol) {
    TlsPeer server = TlsPeer::server(accepted, outer_, protocol);
    EXPECT_TRUE(server.shaken);
    const auto hear = [&] {
      const std::string head = server.hear("\r\n\r\n");
      if (!head.empty()) lines.push_back(head.substr(0, head.find(" HTTP")));
    };
    for (const std::string& answer : served.answers) {
      hear();
      server.say(answer);
    }
    if (served.then == Served::Then::hears) hear();
    ::shutdown(accepted.get(), SHUT_RDWR);
    if (served.closed != nullptr) served.closed->set_value();
  }
  // One request on a connection of its own; comes back when the broker has ended it.
  std::string ask(const sys::Fd& socket, std::string_view line, std::string_view protocols = {},
                  std::string_view fields = "") {
    TlsPeer client = TlsPeer::client(socket, inner_, protocols);
    EXPECT_TRUE(client.shaken);
    client.say(request(line, std::string(fields) + "Connection: close\r\n"));
    const std::string head = client.hear("\r\n\r\n");
    (void)client.hear("never said");
    return head.substr(0, 12);
  }
  void end_of_origin(std::thread& side) {
    // What it still waits for is our end.
    stage->loop.cancel_all();
    terminator.reset();
    side.join();
  }
  [[nodiscard]] std::size_t reused() const {
    return support::count_of(R"("reason":"reused")", log());
  }
};

const std::string fine = "HTTP/1.1 200";

TEST_F(TerminatorKeep, ClientsOneAfterTheOtherShareAConnection) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured(), captured()};
  Heard heard;
  std::thread origin_side = serve({{.answers = {ok, ok, ok}}}, heard);
  play([&] {
    for (const sys::Fd& socket : sockets) EXPECT_EQ(ask(socket, "GET /"), fine);
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard, (Heard{{"GET /", "GET /", "GET /"}}));
  EXPECT_EQ(reused(), 2U) << log();
  EXPECT_EQ(support::count_of(R"("event":"connect")", log()), 3U);
  EXPECT_EQ(support::count_of(R"("address":"127.0.0.1","serverName")", log()), 3U) << log();
}

TEST_F(TerminatorKeep, AlsoThroughTheProxy) {
  begin_sealed();
  const sys::Fd sockets[] = {proxied(), proxied()};
  Heard heard;
  std::thread origin_side = serve({{.answers = {ok, ok}}}, heard);
  play([&] {
    for (const sys::Fd& socket : sockets) {
      send_text(socket, "CONNECT localhost:" + port() + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const std::string_view connected = "HTTP/1.1 200 Connection established\r\n\r\n";
      EXPECT_EQ(receive(socket, connected.size()), connected);
      EXPECT_EQ(ask(socket, "GET /"), fine);
    }
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard, (Heard{{"GET /", "GET /"}}));
  EXPECT_EQ(reused(), 1U) << log();
}

TEST_F(TerminatorKeep, AClientThatJustLeavesDoesTheSame) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured()};
  Heard heard;
  std::thread origin_side = serve({{.answers = {ok, ok}}}, heard);
  play([&] {
    for (const sys::Fd& socket : sockets) {
      TlsPeer client = TlsPeer::client(socket, inner_);
      client.say(request("GET /"));
      EXPECT_EQ(client.hear("ok").substr(0, fine.size()), fine);
      ::shutdown(socket.get(), SHUT_WR);
      EXPECT_EQ(client.hear("never said"), "");
    }
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard, (Heard{{"GET /", "GET /"}}));
}

TEST_F(TerminatorKeep, WhatIsSaidBeyondAnAnswerReachesNoOtherClient) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured()};
  Heard heard;
  const std::string forged = "HTTP/1.1 404 Forged\r\nContent-Length: 0\r\n\r\n";
  std::thread origin_side = serve({{.answers = {ok + forged}}, {.answers = {ok}}}, heard);
  play([&] {
    for (const sys::Fd& socket : sockets) EXPECT_EQ(ask(socket, "GET /"), fine);
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard.size(), 2U);
  EXPECT_EQ(reused(), 0U) << log();
}

// OpenSSL has read it from the socket already, but nobody has read it from OpenSSL.
TEST_F(TerminatorKeep, ARecordThatCameWithTheAnswerReachesNoOtherClient) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured()};
  const std::string forged = "HTTP/1.1 404 Forged\r\nContent-Length: 0\r\n\r\n";
  std::thread origin_side([&] {
    const sys::Fd first = accept_from(origin);
    TlsPeer server = TlsPeer::server(first, outer_);
    (void)server.hear("\r\n\r\n");
    const int on = 1;
    const int off = 0;
    EXPECT_EQ(::setsockopt(first.get(), IPPROTO_TCP, TCP_CORK, &on, sizeof(on)), 0);
    server.say(ok);
    server.say(forged);
    EXPECT_EQ(::setsockopt(first.get(), IPPROTO_TCP, TCP_CORK, &off, sizeof(off)), 0);
    const sys::Fd second = accept_from(origin);
    TlsPeer again = TlsPeer::server(second, outer_);
    (void)again.hear("\r\n\r\n");
    again.say(ok);
    (void)again.hear("never said");
  });
  play([&] {
    for (const sys::Fd& socket : sockets) EXPECT_EQ(ask(socket, "GET /"), fine);
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(reused(), 0U) << log();
}

TEST_F(TerminatorKeep, AnOriginThatHasClosedMeanwhileIsDialledAgain) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured()};
  Heard heard;
  std::promise<void> closed;
  std::thread origin_side =
      serve({{.answers = {ok}, .then = Served::Then::closes, .closed = &closed}, {.answers = {ok}}},
            heard);
  play([&] {
    EXPECT_EQ(ask(sockets[0], "GET /"), fine);
    closed.get_future().wait();
    EXPECT_EQ(ask(sockets[1], "POST /", {}, "Content-Length: 0\r\n"), fine);
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard, (Heard{{"GET /"}, {"POST /"}}));
}

TEST_F(TerminatorKeep, WhatChangesSomethingGetsAConnectionOfItsOwn) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured(), captured()};
  Heard heard;
  std::thread origin_side = serve({{.answers = {ok}}, {.answers = {ok, ok}}}, heard);
  play([&] {
    EXPECT_EQ(ask(sockets[0], "GET /1"), fine);
    EXPECT_EQ(ask(sockets[1], "POST /2", {}, "Content-Length: 0\r\n"), fine);
    EXPECT_EQ(ask(sockets[2], "GET /3"), fine);
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard, (Heard{{"GET /1"}, {"POST /2", "GET /3"}}));
}

TEST_F(TerminatorKeep, AGetThatIsNotAnsweredIsAskedAgain) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured()};
  Heard heard;
  std::thread origin_side = serve({{.answers = {ok}}, {.answers = {ok}}}, heard);
  play([&] {
    EXPECT_EQ(ask(sockets[0], "GET /1"), fine);
    EXPECT_EQ(ask(sockets[1], "GET /2"), fine);
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard, (Heard{{"GET /1", "GET /2"}, {"GET /2"}}));
  EXPECT_EQ(support::count_of(R"("path":"/2","status":200)", log()), 1U) << log();
}

TEST_F(TerminatorKeep, AClientThatOffersSomethingElseGetsItsOwn) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured(), captured()};
  Heard heard;
  std::thread origin_side = serve({{.answers = {ok}}, {.answers = {ok, ok}}}, heard, "http/1.1");
  const std::string_view one("\x08http/1.1", 9);
  const std::string_view both("\x02h2\x08http/1.1", 12);
  play([&] {
    EXPECT_EQ(ask(sockets[0], "GET /1", one), fine);
    EXPECT_EQ(ask(sockets[1], "GET /2", both), fine);
    EXPECT_EQ(ask(sockets[2], "GET /3", both), fine);
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard, (Heard{{"GET /1"}, {"GET /2", "GET /3"}}));
}

TEST_F(TerminatorKeep, RulesHoldForEveryClient) {
  begin_sealed("?methods=GET");
  const sys::Fd sockets[] = {captured(), captured()};
  Heard heard;
  std::thread origin_side = serve({{.answers = {ok}}}, heard);
  play([&] {
    EXPECT_EQ(ask(sockets[0], "GET /"), fine);
    EXPECT_EQ(ask(sockets[1], "DELETE /"), "HTTP/1.1 403");
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard, (Heard{{"GET /"}}));
}

// In the loop, so that nothing else happens meanwhile; then answers.
egress::Task when_told(egress::Loop& loop, egress::SocketPtr socket, std::function<void()> change) {
  (void)co_await loop.readable(*socket);
  change();
  (void)::send(socket->fd(), "x", 1, MSG_NOSIGNAL);
}

// The rules that hold now decide, not those that held when the connection was made.
TEST_F(TerminatorKeep, TheAddressOfAKeptConnectionIsCheckedAgain) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured()};
  support::Pair change = support::unix_pair();
  when_told(stage->loop, stage->adopt(std::move(change.second)),
            [&] { policy.public_only = true; });
  Heard heard;
  std::thread origin_side = serve({{.answers = {ok}}}, heard);
  play([&] {
    EXPECT_EQ(ask(sockets[0], "GET /1"), fine);
    send_text(change.first, "x");
    EXPECT_EQ(receive(change.first, 1), "x");
    EXPECT_FALSE(TlsPeer::client(sockets[1], inner_).shaken);
  });
  connections.reset();
  end_of_origin(origin_side);
  change = {};
  EXPECT_EQ(heard, (Heard{{"GET /1"}}));
  EXPECT_EQ(reused(), 0U) << log();
  EXPECT_TRUE(tells(R"("reason":"private-address")")) << log();
}

TEST_F(TerminatorKeep, AKeptConnectionThatTheLogDoesNotTellIsNotUsed) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured()};
  Heard heard;
  std::thread origin_side = serve({{.answers = {ok}}}, heard);
  play([&] {
    EXPECT_EQ(ask(sockets[0], "GET /1"), fine);
    EXPECT_EQ(::fcntl(audit.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
    EXPECT_FALSE(TlsPeer::client(sockets[1], inner_).shaken);
  });
  connections.reset();
  end_of_origin(origin_side);
  EXPECT_EQ(heard, (Heard{{"GET /1"}}));
  EXPECT_TRUE(support::text_of(diagnostics).contains("audit log cannot be written"));
}

}  // namespace
}  // namespace capgate::seal
