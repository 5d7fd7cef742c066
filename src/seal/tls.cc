#include "seal/tls.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/format.h"

namespace capgate::seal {
namespace {

constexpr std::size_t most_sessions = 8;  // of one endpoint; those of TLS 1.3 are used once
// Leaves are valid for a week.
constexpr std::chrono::hours longest_use_of_a_leaf{24};
// The shorter key first: as safe, and half a handshake's hashing cheaper where the processor knows
// SHA-256.
constexpr const char* preferred_suites =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
// Leaves have ECDSA keys: whatever else a client offers need not be looked at.
constexpr const char* leaf_signatures = "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512";
constexpr const char* usual_directory = "/etc/ssl/certs";
constexpr const char* usual_bundles[] = {"/etc/pki/tls/certs/ca-bundle.crt",
                                         "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

// Of our own data in an SSL: the endpoint's sessions for origins, the protocol for clients.
int own_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

}  // namespace

std::string last_error() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

std::vector<std::string> places_of(const Roots& roots) {
  std::vector<std::string> out = {"/etc/ssl",
                                  "/etc/pki",
                                  "/etc/ca-certificates",
                                  "/usr/lib/ssl",
                                  "/usr/share/ca-certificates",
                                  "/usr/local/share/ca-certificates"};
  if (!roots.file.empty()) out.push_back(roots.file);
  if (!roots.directory.empty()) out.push_back(roots.directory);
  return out;
}

std::string spoken_protocols(std::string_view list) {
  std::string out;
  while (!list.empty()) {
    const auto size = std::min<std::size_t>(static_cast<unsigned char>(list[0]), list.size() - 1);
    const std::string_view name = list.substr(1, size);
    if (name == "h2" || name == "http/1.1") out.append(list.substr(0, 1 + size));
    list.remove_prefix(1 + size);
  }
  return out;
}

Tls::Tls(Authority authority, Roots roots)
    : authority_(std::move(authority)), roots_(std::move(roots)) {}

Tls::~Tls() = default;

SslPtr Tls::fail(std::string_view what) {
  problem_ = format("{}: {}", what, last_error());
  return nullptr;
}

bool Tls::make_origin_context() {
  if (origin_context_) return true;
  ContextPtr made(SSL_CTX_new(TLS_client_method()));
  if (!made) return false;
  SSL_CTX* context = made.get();
  const std::string directory = roots_.directory.empty() ? usual_directory : roots_.directory;
  bool has_roots = SSL_CTX_load_verify_dir(context, directory.c_str()) == 1;
  if (!roots_.file.empty()) {
    has_roots = SSL_CTX_load_verify_file(context, roots_.file.c_str()) == 1 && has_roots;
  } else if (roots_.directory.empty()) {
    for (const char* bundle : usual_bundles) {
      if (::access(bundle, R_OK) == 0) (void)SSL_CTX_load_verify_file(context, bundle);
    }
  }
  if (!has_roots || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, preferred_suites) != 1) {
    return false;
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keep_session);
  origin_context_ = std::move(made);
  return true;
}

bool Tls::fill_client_context(SSL_CTX* context, const std::string& host) {
  const auto leaf = authority_.issue(host);
  if (!leaf) {
    problem_ = leaf.error();
    return false;
  }
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, preferred_suites) != 1 ||
      // The macro for it drops const in a way that is a warning.
      SSL_CTX_ctrl(context, SSL_CTRL_SET_SIGALGS_LIST, 0, const_cast<char*>(leaf_signatures)) !=
          1 ||
      // A resumed session would save a client a tenth of a millisecond, and every ticket that is
      // never used costs as much.
      SSL_CTX_set_num_tickets(context, 0) != 1 ||
      SSL_CTX_use_certificate(context, leaf->certificate) != 1 ||
      SSL_CTX_use_PrivateKey(context, leaf->key) != 1 ||
      SSL_CTX_add1_chain_cert(context, authority_.certificate()) != 1) {
    problem_ = format("TLS cannot be set up: {}", last_error());
    return false;
  }
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(context,
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  return true;
}

SSL_CTX* Tls::client_context(const std::string& host) {
  const auto now = std::chrono::steady_clock::now();
  ClientContext& kept = client_contexts_[host];
  if (kept.context && now - kept.made < longest_use_of_a_leaf) return kept.context.get();
  ContextPtr made(SSL_CTX_new(TLS_server_method()));
  if (!made || !fill_client_context(made.get(), host)) return nullptr;
  kept = {.context = std::move(made), .made = now};
  return kept.context.get();
}

// Called when an origin gives a ticket, as often as it does. 1: the session is ours.
int Tls::keep_session(SSL* ssl, SSL_SESSION* session) {
  auto* origin = static_cast<Origin*>(SSL_get_ex_data(ssl, own_index()));
  if (origin == nullptr || SSL_SESSION_is_resumable(session) != 1) return 0;
  origin->sessions.emplace_back(session);
  if (origin->sessions.size() > most_sessions) origin->sessions.pop_front();
  return 1;
}

std::optional<std::string> Tls::expected_protocol(const Endpoint& endpoint,
                                                  std::string_view offered) const {
  const auto found = origins_.find(endpoint);
  if (found == origins_.end() || found->second.sessions.empty()) return std::nullopt;
  if (found->second.offered != offered || !found->second.is_known) return std::nullopt;
  return found->second.chosen;
}

void Tls::remember_protocol(const Endpoint& endpoint, std::string_view offered,
                            std::string_view chosen) {
  Origin& origin = origins_[endpoint];
  origin.offered = offered;
  origin.chosen = chosen;
  origin.is_known = true;
}

// Its place stays: an SSL may point to it.
void Tls::forget(const Endpoint& endpoint) {
  Origin& origin = origins_[endpoint];
  origin.sessions.clear();
  origin.is_known = false;
}

// OpenSSL's signature. NOLINTNEXTLINE(readability-function-size)
int Tls::choose_protocol(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                         const unsigned char* /*in*/, unsigned /*in_size*/, void* /*unused*/) {
  // It is one of those that the client has offered: the origin chose from them.
  const auto* chosen = static_cast<const std::string*>(SSL_get_ex_data(ssl, own_index()));
  if (chosen == nullptr || chosen->empty()) return SSL_TLSEXT_ERR_NOACK;
  *out = reinterpret_cast<const unsigned char*>(chosen->data());
  *out_size = static_cast<unsigned char>(chosen->size());
  return SSL_TLSEXT_ERR_OK;
}

SslPtr Tls::to_origin(const Endpoint& endpoint, std::string_view protocols) {
  ERR_clear_error();
  if (!make_origin_context()) return fail("TLS cannot be set up");
  SslPtr ssl(SSL_new(origin_context_.get()));
  if (!ssl || SSL_set_tlsext_host_name(ssl.get(), endpoint.host.c_str()) != 1 ||
      SSL_set1_host(ssl.get(), endpoint.host.c_str()) != 1) {
    return fail("TLS cannot be set up");
  }
  // Zero is success, unlike anywhere else.
  if (!protocols.empty() &&
      SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                          static_cast<unsigned>(protocols.size())) != 0) {
    return fail("TLS cannot be set up");
  }
  Origin& origin = origins_[endpoint];
  if (SSL_set_ex_data(ssl.get(), own_index(), &origin) != 1) return fail("TLS cannot be set up");
  // The newest, once.
  if (!origin.sessions.empty()) {
    if (SSL_set_session(ssl.get(), origin.sessions.back().get()) != 1) ERR_clear_error();
    origin.sessions.pop_back();
  }
  SSL_set_connect_state(ssl.get());
  return ssl;
}

SslPtr Tls::to_client(const std::string& host, const std::string& protocol) {
  ERR_clear_error();
  SSL_CTX* context = client_context(host);
  if (context == nullptr) return nullptr;
  SslPtr ssl(SSL_new(context));
  if (!ssl || SSL_set_ex_data(ssl.get(), own_index(), const_cast<std::string*>(&protocol)) != 1) {
    return fail("TLS cannot be set up");
  }
  SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace capgate::seal
