#include "seal/terminator.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "support/egress_stage.h"
#include "support/temp_directory.h"

namespace capgate::seal {
namespace {

using support::accept_from;
using support::end_of;

constexpr std::string_view placeholder = "placeholder-0123456789abcdef";
constexpr std::string_view value = "the-real-value-of-the-token!";

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using ContextPtr = std::unique_ptr<SSL_CTX, FreeContext>;

// One side of a connection, blocking: the program in the sandbox, or the origin.
class Peer {
 public:
  static Peer server(const sys::Fd& fd, Authority& authority, std::string protocol = {}) {
    Peer out(TLS_server_method());
    out.protocol_ = std::make_unique<std::string>(std::move(protocol));
    const Leaf leaf = authority.issue("localhost").value();
    EXPECT_EQ(SSL_CTX_use_certificate(out.context_.get(), leaf.certificate), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(out.context_.get(), leaf.key), 1);
    EXPECT_EQ(SSL_CTX_add1_chain_cert(out.context_.get(), authority.certificate()), 1);
    if (!out.protocol_->empty()) {
      SSL_CTX_set_alpn_select_cb(out.context_.get(), choose, out.protocol_.get());
    }
    out.begin(fd);
    out.shaken = SSL_accept(out.ssl_.get()) == 1;
    return out;
  }
  static Peer client(const sys::Fd& fd, const Authority& trusted, std::string_view protocols = {}) {
    Peer out(TLS_client_method());
    const std::string der = trusted.anchor_der();
    const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
    const CertificatePtr root(d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
    EXPECT_EQ(X509_STORE_add_cert(SSL_CTX_get_cert_store(out.context_.get()), root.get()), 1);
    SSL_CTX_set_verify(out.context_.get(), SSL_VERIFY_PEER, nullptr);
    out.begin(fd);
    SSL_set_tlsext_host_name(out.ssl_.get(), "localhost");
    EXPECT_EQ(SSL_set1_host(out.ssl_.get(), "localhost"), 1);
    if (!protocols.empty()) {
      SSL_set_alpn_protos(out.ssl_.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                          static_cast<unsigned>(protocols.size()));
    }
    out.shaken = SSL_connect(out.ssl_.get()) == 1;
    return out;
  }

  void say(std::string_view text) {
    EXPECT_EQ(SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())),
              static_cast<int>(text.size()));
  }
  // Up to and with `last`.
  std::string hear(std::string_view last) {
    std::string out;
    char c = 0;
    while (!out.ends_with(last) && SSL_read(ssl_.get(), &c, 1) == 1) out += c;
    return out;
  }
  [[nodiscard]] long verdict() const { return SSL_get_verify_result(ssl_.get()); }
  [[nodiscard]] bool is_resumed() const { return SSL_session_reused(ssl_.get()) == 1; }

  bool shaken = false;

 private:
  explicit Peer(const SSL_METHOD* method) : context_(SSL_CTX_new(method)) {}
  void begin(const sys::Fd& fd) {
    ssl_.reset(SSL_new(context_.get()));
    EXPECT_EQ(SSL_set_fd(ssl_.get(), fd.get()), 1);
  }
  static int choose(SSL* /*ssl*/, const unsigned char** out, unsigned char* size,
                    const unsigned char* /*in*/, unsigned /*in_size*/, void* wanted) {
    const auto* protocol = static_cast<const std::string*>(wanted);
    *out = reinterpret_cast<const unsigned char*>(protocol->data());
    *size = static_cast<unsigned char>(protocol->size());
    return SSL_TLSEXT_ERR_OK;
  }

  ContextPtr context_;
  SslPtr ssl_;
  std::unique_ptr<std::string> protocol_;
};

Authority authority_for(std::string name) {
  const std::vector names{std::move(name)};
  return std::move(make_authority(names).value());
}

class TerminatorTest : public support::EgressTest {
 protected:
  void begin_sealed(std::string_view refinements = "") {
    begin({std::string("localhost:@") + std::string(refinements)});
    const auto capability = core::parse_capability("env:inject:TOKEN?to=localhost:" + port(), {});
    policy.seals.push_back({.env = std::get<core::EnvCapability>(capability->front()),
                            .placeholder = std::string(placeholder),
                            .position = "test:1:1"});
    std::vector<secrets::Handed> handed(1);
    handed[0].name = "TOKEN";
    handed[0].value = *secrets::Secret::make(value);
    terminator.emplace(
        SealTerminator::Parts{stage->loop, policy, *journal},
        std::move(read_authority(inner_.key_der()->view(), inner_.certificate_der()).value()),
        Roots{.file = roots_}, Values(stage->loop, std::move(handed), {}));
    connections->use(*terminator);
  }
  ~TerminatorTest() override { connections.reset(); }

  [[nodiscard]] std::string request(std::string_view line, std::string_view fields = "") const {
    return std::string(line) + " HTTP/1.1\r\nHost: localhost:" + port() + "\r\n" +
           std::string(fields) + "\r\n";
  }

  test::TempDirectory directory_;
  Authority inner_ = authority_for("localhost");  // the sandbox's
  Authority outer_ = authority_for("localhost");  // that the host trusts
  std::string roots_ = directory_.file("roots.pem", outer_.anchor_pem());
  std::optional<SealTerminator> terminator;
};

TEST_F(TerminatorTest, GivesTheOriginTheValueAndTheClientTheAnswer) {
  begin_sealed();
  const sys::Fd socket = captured();
  play([&] {
    std::thread origin_side([&] {
      const sys::Fd accepted = accept_from(origin);
      Peer server = Peer::server(accepted, outer_);
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
    Peer client = Peer::client(socket, inner_);
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
        const Peer server = Peer::server(accepted, stranger);
        EXPECT_FALSE(server.shaken);
      }
    });
    const Peer client = Peer::client(socket, inner_);
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
        Peer server = Peer::server(accepted, *authority);
        EXPECT_EQ(server.shaken, authority == &outer_);
        if (!server.shaken) continue;
        (void)server.hear("\r\n\r\n");
        server.say("HTTP/1.1 204 No Content\r\n\r\n");
        (void)server.hear("\r\n");
      }
    });
    {
      Peer client = Peer::client(sockets[0], inner_);
      EXPECT_TRUE(client.shaken);
      client.say(request("GET /"));
      EXPECT_EQ(client.hear("\r\n"), "HTTP/1.1 204 No Content\r\n");
      ::shutdown(sockets[0].get(), SHUT_RDWR);
    }
    Peer second = Peer::client(sockets[1], inner_);
    EXPECT_EQ(second.verdict(), X509_V_OK);
    EXPECT_EQ(second.hear("\r\n"), "");
    const Peer third = Peer::client(sockets[2], inner_);
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
      Peer server = Peer::server(accepted, outer_);
      EXPECT_EQ(server.hear("\r\n"), "");
    });
    Peer client = Peer::client(socket, inner_);
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
