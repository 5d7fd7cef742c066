// A sealed endpoint with its terminator between a client and an origin that speak TLS, both played
// by the test with blocking sockets.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "seal/terminator.h"
#include "support/egress_stage.h"
#include "support/temp_directory.h"

namespace capgate::support {

inline constexpr std::string_view token_placeholder = "placeholder-0123456789abcdef";
inline constexpr std::string_view token_value = "the-real-value-of-the-token!";

struct FreeTlsContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContextPtr = std::unique_ptr<SSL_CTX, FreeTlsContext>;

// One side of a connection, blocking: the program in the sandbox, or the origin.
class TlsPeer {
 public:
  static TlsPeer server(const sys::Fd& fd, seal::Authority& authority, std::string protocol = {},
                        std::string_view name = "localhost") {
    TlsPeer out(TLS_server_method());
    out.protocol_ = std::make_unique<std::string>(std::move(protocol));
    const seal::Leaf leaf = authority.issue(name).value();
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
  static TlsPeer client(const sys::Fd& fd, const seal::Authority& trusted,
                        std::string_view protocols = {}) {
    TlsPeer out(TLS_client_method());
    const std::string der = trusted.anchor_der();
    const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
    const seal::CertificatePtr root(d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
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
  [[nodiscard]] SSL* ssl() const { return ssl_.get(); }
  [[nodiscard]] long verdict() const { return SSL_get_verify_result(ssl_.get()); }
  [[nodiscard]] bool is_resumed() const { return SSL_session_reused(ssl_.get()) == 1; }

  bool shaken = false;

 private:
  explicit TlsPeer(const SSL_METHOD* method) : context_(SSL_CTX_new(method)) {}
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

  TlsContextPtr context_;
  seal::SslPtr ssl_;
  std::unique_ptr<std::string> protocol_;
};

// What a client says first.
inline std::string real_hello() {
  const TlsContextPtr context(SSL_CTX_new(TLS_client_method()));
  const seal::SslPtr ssl(SSL_new(context.get()));
  BIO* const said = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), said);
  SSL_set_tlsext_host_name(ssl.get(), "localhost");
  EXPECT_EQ(SSL_connect(ssl.get()), -1);
  std::string out(BIO_ctrl_pending(said), '\0');
  EXPECT_EQ(BIO_read(said, out.data(), static_cast<int>(out.size())), static_cast<int>(out.size()));
  return out;
}

inline seal::Authority authority_for(std::string name) {
  const std::vector names{std::move(name)};
  return std::move(seal::make_authority(names).value());
}

class TlsStage : public EgressTest {
 protected:
  // `expires` and `renewal`: of the value, as it is handed over.
  void begin_sealed(std::string_view refinements = "", std::int64_t expires = 0,
                    sys::Fd renewal = {}) {
    begin({std::string("localhost:@") + std::string(refinements)});
    const auto capability = core::parse_capability("env:inject:TOKEN?to=localhost:" + port(), {});
    policy.seals.push_back({.env = std::get<core::EnvCapability>(capability->front()),
                            .placeholder = std::string(token_placeholder),
                            .position = "test:1:1"});
    std::vector<secrets::Handed> handed(1);
    handed[0].name = "TOKEN";
    handed[0].value = *secrets::Secret::make(token_value);
    handed[0].expires = expires;
    terminator.emplace(
        seal::SealTerminator::Parts{stage->loop, policy, *journal},
        std::move(seal::read_authority(inner_.key_der()->view(), inner_.certificate_der()).value()),
        seal::Roots{.file = roots_},
        seal::Values(stage->loop, std::move(handed), std::move(renewal)));
    terminator->begin();
    connections->use(*terminator);
  }
  ~TlsStage() override { connections.reset(); }

  [[nodiscard]] std::string request(std::string_view line, std::string_view fields = "") const {
    return std::string(line) + " HTTP/1.1\r\nHost: localhost:" + port() + "\r\n" +
           std::string(fields) + "\r\n";
  }

  test::TempDirectory directory_;
  seal::Authority inner_ = authority_for("localhost");  // the sandbox's
  seal::Authority outer_ = authority_for("localhost");  // that the host trusts
  std::string roots_ = directory_.file("roots.pem", outer_.anchor_pem());
  std::optional<seal::SealTerminator> terminator;
};

}  // namespace capgate::support
