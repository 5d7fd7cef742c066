#include "seal/tls.h"

#include <gtest/gtest.h>
#include <openssl/x509_vfy.h>

#include "support/tls_stage.h"

namespace capgate::seal {
namespace {

using support::accept_from;
using support::authority_for;
using support::TlsPeer;

TEST(Tls, VerifiesOriginsAndSpeaksNothingOlderThan12) {
  const test::TempDirectory directory;
  const Authority outer = authority_for("localhost");
  Tls tls(authority_for("localhost"), {.file = directory.file("roots.pem", outer.anchor_pem())});
  const SslPtr origin = tls.to_origin({"localhost", 443}, "");
  ASSERT_TRUE(origin) << tls.problem();
  EXPECT_EQ(SSL_get_verify_mode(origin.get()), SSL_VERIFY_PEER);
  EXPECT_EQ(SSL_get_min_proto_version(origin.get()), TLS1_2_VERSION);
  EXPECT_NE(SSL_get_options(origin.get()) & SSL_OP_NO_RENEGOTIATION, 0U);
  const std::string protocol;
  const SslPtr client = tls.to_client("localhost", protocol);
  ASSERT_TRUE(client) << tls.problem();
  EXPECT_EQ(SSL_get_min_proto_version(client.get()), TLS1_2_VERSION);
  EXPECT_NE(SSL_get_options(client.get()) & SSL_OP_NO_RENEGOTIATION, 0U);
}

class OriginIdentity : public support::TlsStage {};

// The certificate is good, but of another host: the same roots vouch for both.
TEST_F(OriginIdentity, OfAnotherNameIsRefused) {
  Authority other = authority_for("other.test");
  roots_ = directory_.file("other.pem", other.anchor_pem());
  begin_sealed();
  const sys::Fd socket = captured();
  play([&] {
    std::thread origin_side([&] {
      for (int i = 0; i < 2; ++i) {  // ours, then the client's own hello
        const sys::Fd accepted = accept_from(origin);
        const TlsPeer server = TlsPeer::server(accepted, other, {}, "other.test");
        EXPECT_FALSE(server.shaken);
      }
    });
    const TlsPeer client = TlsPeer::client(socket, inner_);
    EXPECT_FALSE(client.shaken);
    origin_side.join();
  });
  EXPECT_TRUE(tells(R"("reason":"certificate")")) << log();
  EXPECT_TRUE(tells("hostname mismatch")) << log();
}

// The client was promised what the origin spoke before.
TEST_F(OriginIdentity, AnotherProtocolThanBeforeEndsTheConnection) {
  begin_sealed();
  const sys::Fd sockets[] = {captured(), captured()};
  const std::string_view both("\x02h2\x08http/1.1", 12);
  play([&] {
    std::thread origin_side([&] {
      const sys::Fd first = accept_from(origin);
      TlsPeer known = TlsPeer::server(first, outer_, "http/1.1");
      EXPECT_TRUE(known.shaken);
      (void)known.hear("\r\n\r\n");
      known.say("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
      (void)known.hear("\r\n");
      const sys::Fd second = accept_from(origin);
      TlsPeer changed = TlsPeer::server(second, outer_, "h2");
      EXPECT_EQ(changed.hear("\r\n"), "");
    });
    {
      TlsPeer client = TlsPeer::client(sockets[0], inner_, both);
      EXPECT_TRUE(client.shaken);
      client.say(request("GET /"));
      EXPECT_EQ(client.hear("\r\n"), "HTTP/1.1 204 No Content\r\n");
      ::shutdown(sockets[0].get(), SHUT_RDWR);
    }
    TlsPeer client = TlsPeer::client(sockets[1], inner_, both);
    EXPECT_EQ(client.hear("\r\n"), "");
    ::shutdown(sockets[1].get(), SHUT_RDWR);
    origin_side.join();
  });
  EXPECT_TRUE(tells("the origin speaks something else than before")) << log();
}

struct NamedHost {
  std::string_view host;
  std::string_view reason;
};
class RequestIdentity : public support::TlsStage, public testing::WithParamInterface<NamedHost> {};

// Inside TLS that was made for one host, a request names another: the origin gets none of it.
TEST_P(RequestIdentity, OfAnotherHostIsRefused) {
  begin_sealed("?sni=any");
  const sys::Fd socket = captured();
  play([&] {
    std::thread origin_side([&] {
      const sys::Fd accepted = accept_from(origin);
      TlsPeer server = TlsPeer::server(accepted, outer_);
      EXPECT_TRUE(server.shaken);
      EXPECT_EQ(server.hear("\r\n"), "");
    });
    TlsPeer client = TlsPeer::client(socket, inner_);
    EXPECT_TRUE(client.shaken);
    client.say("GET / HTTP/1.1\r\nHost: " + std::string(GetParam().host) +
               "\r\nAuthorization: Bearer " + std::string(support::token_placeholder) + "\r\n\r\n");
    EXPECT_EQ(client.hear("\r\n"), "HTTP/1.1 403 Forbidden\r\n");
    ::shutdown(socket.get(), SHUT_RDWR);
    origin_side.join();
  });
  EXPECT_TRUE(tells(R"("reason":")" + std::string(GetParam().reason) + '"')) << log();
}

INSTANTIATE_TEST_SUITE_P(All, RequestIdentity,
                         testing::Values(NamedHost{"evil.test", "other-name"},
                                         NamedHost{"localhost:1", "other-name"},
                                         NamedHost{"a b", "other-name"}));

}  // namespace
}  // namespace capgate::seal
