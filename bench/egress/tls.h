// OpenSSL for the programs of bench/egress: owners, the contexts of both roles, and ending with its
// reason. Without more, every handshake is a full one.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>
#include <string_view>

#include "net.h"

namespace capgate::bench {

struct FreeTls {
  void operator()(SSL* tls) const { SSL_free(tls); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
using Tls = std::unique_ptr<SSL, FreeTls>;
using TlsContext = std::unique_ptr<SSL_CTX, FreeTls>;

// The whole lab: what CONNECT asks for, the SNI, and the name in every certificate.
inline constexpr const char* tls_host = "localhost";

inline std::string_view tls_error() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "the connection broke off";
}

inline void need_tls(int result, std::string_view what) {
  if (result != 1) stop("{}: {}", what, tls_error());
}

inline TlsContext make_context(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method));
  if (context == nullptr) stop("SSL_CTX_new: {}", tls_error());
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);  // a record costs one read instead of two
  return context;
}

// Trusts this authority alone.
inline TlsContext make_client_context(const char* authority) {
  TlsContext context = make_context(TLS_client_method());
  need_tls(SSL_CTX_load_verify_file(context.get(), authority), authority);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  constexpr unsigned char http1[] = "\x08http/1.1";
  // 0 is success, here only.
  if (SSL_CTX_set_alpn_protos(context.get(), http1, sizeof(http1) - 1) != 0) stop("ALPN");
  return context;
}

inline Tls make_client(SSL_CTX* context, int fd) {
  Tls tls(SSL_new(context));
  if (tls == nullptr) stop("SSL_new: {}", tls_error());
  need_tls(SSL_set_fd(tls.get(), fd), "SSL_set_fd");
  need_tls(static_cast<int>(SSL_set_tlsext_host_name(tls.get(), tls_host)), "SNI");
  need_tls(SSL_set1_host(tls.get(), tls_host), "SSL_set1_host");
  SSL_set_connect_state(tls.get());
  return tls;
}

}  // namespace capgate::bench
