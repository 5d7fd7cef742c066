// TLS as the broker speaks it: as a client to origins, verified against the host's roots, and as a
// server to the sandbox, with leaves of the sandbox's own authority.
//
//   Tls tls(std::move(authority), {.file = "", .directory = ""});
//   SslPtr origin = tls.to_origin({"api.github.com", 443}, alpn);
//   SslPtr client = tls.to_client("api.github.com", "h2");
//
// Contexts and roots are made at the first use: a sandbox that makes no such connection pays
// nothing. Roots are looked up by directory, one file per issuer, never as a bundle of all of them,
// unless only a bundle is there. Sessions with origins are resumed; they are kept by endpoint.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "seal/authority.h"
#include "seal/tls_stream.h"

namespace capgate::seal {

struct Roots {
  std::string file;       // as SSL_CERT_FILE says; empty: none
  std::string directory;  // as SSL_CERT_DIR says; empty: the usual one
};

// What must stay readable for them: both, and where certificates are kept.
[[nodiscard]] std::vector<std::string> places_of(const Roots& roots);

class Tls {
 public:
  Tls(Authority authority, Roots roots);
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  Tls(Tls&&) = delete;
  Tls& operator=(Tls&&) = delete;
  ~Tls();

  struct Endpoint {
    std::string host;
    std::uint16_t port = 0;
    friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
  };
  // `protocols`: ALPN's list as a client sends it; empty: none. Null: problem() says why.
  [[nodiscard]] SslPtr to_origin(const Endpoint& endpoint, std::string_view protocols);
  // `protocol`: what the origin chose; empty: nothing is chosen. It must outlive the handshake.
  [[nodiscard]] SslPtr to_client(const std::string& host, const std::string& protocol);

  // What the origin will choose, if it is going to resume a session and chose so before. It was
  // verified then, so its certificate is not asked for again.
  [[nodiscard]] std::optional<std::string> expected_protocol(const Endpoint& endpoint,
                                                             std::string_view offered) const;
  void remember_protocol(const Endpoint& endpoint, std::string_view offered,
                         std::string_view chosen);
  // The next connection begins anew.
  void forget(const Endpoint& endpoint);

  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using ContextPtr = std::unique_ptr<SSL_CTX, FreeContext>;
  struct ClientContext {
    ContextPtr context;  // with the host's certificate
    std::chrono::steady_clock::time_point made;
  };
  struct FreeSession {
    void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
  };
  using SessionPtr = std::unique_ptr<SSL_SESSION, FreeSession>;

  [[nodiscard]] bool make_origin_context();
  [[nodiscard]] SSL_CTX* client_context(const std::string& host);
  [[nodiscard]] bool fill_client_context(SSL_CTX* context, const std::string& host);
  static int keep_session(SSL* ssl, SSL_SESSION* session);
  static int choose_protocol(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                             const unsigned char* in, unsigned in_size, void* unused);
  SslPtr fail(std::string_view what);

  Authority authority_;
  Roots roots_;
  ContextPtr origin_context_;
  std::map<std::string, ClientContext> client_contexts_;  // by host
  // What is known of an endpoint from earlier connections. As many as endpoints carry secrets.
  struct Origin {
    std::deque<SessionPtr> sessions;
    std::string offered;
    std::string chosen;
    bool is_known = false;  // both of them
  };
  // An SSL points to its own, so none is ever removed.
  std::map<Endpoint, Origin> origins_;
  std::string problem_;
};

// Of a list as a client sends it, what the relays speak: h2 and http/1.1, in its order.
[[nodiscard]] std::string spoken_protocols(std::string_view list);

// OpenSSL's last error in words; never a value.
[[nodiscard]] std::string last_error();

}  // namespace capgate::seal
