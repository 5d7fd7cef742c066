#include "seal/terminator.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "support/tls_stage.h"

namespace capgate::seal {
namespace {

using support::accept_from;
using support::authority_for;
using support::end_of;
using support::TlsPeer;

constexpr std::string_view placeholder = support::token_placeholder;
constexpr std::string_view value = support::token_value;

class TerminatorTest : public support::TlsStage {};

TEST_F(TerminatorTest, GivesTheOriginTheValueAndTheClientTheAnswer) {
  begin_sealed();
  const sys::Fd socket = captured();
  play([&] {
    std::thread origin_side([&] {
      const sys::Fd accepted = accept_from(origin);
      TlsPeer server = TlsPeer::server(accepted, outer_);
      EXPECT_TRUE(server.shaken);
      const std::string head = server.hear("\r\n\r\n");
      EXPECT_NE(head.find("Authorization: Bearer " + std::string(value) + "\r\n"),
                std::string::npos)
          << head;
      EXPECT_EQ(head.find(placeholder), std::string::npos);
      server.say("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(value.size()) + "\r\n\r\n" +
                 std::string(value));
      (void)server.hear("\0");
    });
    TlsPeer client = TlsPeer::client(socket, inner_);
    EXPECT_TRUE(client.shaken);
    client.say(
        request("GET /user?q=1", "Authorization: Bearer " + std::string(placeholder) + "\r\n"));
    const std::string head = client.hear("\r\n\r\n");
    EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
    std::string body = client.hear(placeholder.substr(placeholder.size() - 4));
    EXPECT_EQ(body, placeholder);
    ::shutdown(socket.get(), SHUT_RDWR);
    origin_side.join();
  });
  EXPECT_TRUE(tells(R"("event":"request")")) << log();
  EXPECT_TRUE(tells(R"("method":"GET","path":"/user","status":200,"secrets":"TOKEN")")) << log();
  EXPECT_FALSE(tells(value)) << log();
}

TEST_F(TerminatorTest, ShowsTheClientABrokenCertificateAndNothingElse) {
  begin_sealed();
  Authority stranger = authority_for("localhost");
  const sys::Fd socket = captured();
  play([&] {
    std::thread origin_side([&] {
      for (int i = 0; i < 2; ++i) {  // ours, then the client's own hello
        const sys::Fd accepted = accept_from(origin);
        const TlsPeer server = TlsPeer::server(accepted, stranger);
        EXPECT_FALSE(server.shaken);
      }
    });
    const TlsPeer client = TlsPeer::client(socket, inner_);
    EXPECT_FALSE(client.shaken);
    EXPECT_EQ(client.verdict(), X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
    origin_side.join();
  });
  EXPECT_TRUE(tells(R"("reason":"certificate")")) << log();
}

// The client's answer begins before the origin's is over, so a certificate that has become bad
// since is shown by the connection after that.
TEST_F(TerminatorTest, GreetsBothAtOnceWhereTheOriginIsKnown) {
  begin_sealed();
  Authority stranger = authority_for("localhost");
  const sys::Fd sockets[] = {captured(), captured(), captured()};
  play([&] {
    std::thread origin_side([&] {
      for (Authority* authority : {&outer_, &stranger, &stranger, &stranger}) {
        const sys::Fd accepted = accept_from(origin);
        TlsPeer server = TlsPeer::server(accepted, *authority);
        EXPECT_EQ(server.shaken, authority == &outer_);
        if (!server.shaken) continue;
        (void)server.hear("\r\n\r\n");
        server.say("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        (void)server.hear("\r\n");
      }
    });
    {
      TlsPeer client = TlsPeer::client(sockets[0], inner_);
      EXPECT_TRUE(client.shaken);
      client.say(request("GET /"));
      EXPECT_EQ(client.hear("\r\n"), "HTTP/1.1 204 No Content\r\n");
      ::shutdown(sockets[0].get(), SHUT_RDWR);
    }
    TlsPeer second = TlsPeer::client(sockets[1], inner_);
    EXPECT_EQ(second.verdict(), X509_V_OK);
    EXPECT_EQ(second.hear("\r\n"), "");
    const TlsPeer third = TlsPeer::client(sockets[2], inner_);
    EXPECT_EQ(third.verdict(), X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
    origin_side.join();
  });
  EXPECT_TRUE(tells(R"("reason":"handshake")")) << log();
  EXPECT_TRUE(tells(R"("reason":"certificate")")) << log();
}

TEST_F(TerminatorTest, RefusesWhatIsNotTls) {
  begin_sealed();
  const sys::Fd socket = captured();
  play([&] {
    support::send_text(socket, request("GET /"));
    EXPECT_EQ(end_of(socket), ECONNRESET);
  });
  EXPECT_TRUE(tells(R"("reason":"plain-text")")) << log();
}

TEST_F(TerminatorTest, AnswersARefusedRequestWithTheRuleThatIsMissing) {
  begin_sealed("?methods=GET&paths=/repos/**");
  const sys::Fd socket = captured();
  play([&] {
    std::thread origin_side([&] {
      const sys::Fd accepted = accept_from(origin);
      TlsPeer server = TlsPeer::server(accepted, outer_);
      EXPECT_EQ(server.hear("\r\n"), "");
    });
    TlsPeer client = TlsPeer::client(socket, inner_);
    client.say(request("GET /user"));
    EXPECT_EQ(client.hear("\r\n"), "HTTP/1.1 403 Forbidden\r\n");
    ::shutdown(socket.get(), SHUT_RDWR);
    origin_side.join();
  });
  EXPECT_TRUE(tells(R"("reason":"other-path")")) << log();
}

TEST(SpokenProtocols, AreThoseThatTheRelaysKnow) {
  EXPECT_EQ(spoken_protocols(std::string_view("\x02h2\x08http/1.1", 12)),
            std::string_view("\x02h2\x08http/1.1", 12));
  EXPECT_EQ(spoken_protocols(std::string_view("\x02h3\x08http/1.1", 12)),
            std::string_view("\x08http/1.1", 9));
  EXPECT_EQ(spoken_protocols(""), "");
}

}  // namespace
}  // namespace capgate::seal
