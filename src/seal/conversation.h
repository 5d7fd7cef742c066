// One terminated connection while it lives: both streams, and the judgement of its requests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "egress/journal.h"
#include "egress/policy.h"
#include "egress/rate.h"
#include "egress/terminator.h"
#include "seal/keyrings.h"
#include "seal/origin_pool.h"
#include "seal/relay.h"
#include "seal/reused_origin.h"
#include "seal/swap.h"
#include "seal/tls_stream.h"
#include "seal/values.h"

namespace capgate::seal {

class Conversation final : public Requests {
 public:
  struct Parts {
    egress::Loop& loop;
    const egress::Policy& policy;
    egress::Journal& journal;
    Values& values;
    Keyrings& keyrings;
    egress::Rate& requests;  // of all connections
  };
  Conversation(Parts parts, egress::Tunnel& tunnel, egress::Flow flow);

  [[nodiscard]] egress::Tunnel& tunnel() { return tunnel_; }
  void add_origin(SslPtr ssl);
  // Its socket is the tunnel's; what `another` makes takes its place (replace_origin).
  void add_kept(KeptTlsPtr kept, ReusedOrigin::Another another);
  void replace_origin(egress::SocketPtr socket, std::unique_ptr<TlsStream> stream);
  // With its socket. The tunnel has none then.
  [[nodiscard]] KeptTlsPtr take_origin(KeptTls::Key key, egress::Address address);
  void add_client(SslPtr ssl, std::string hello_bytes);
  [[nodiscard]] TlsStream& origin() { return *origin_; }
  [[nodiscard]] bool is_reused() const { return reused_ != nullptr; }
  // What the relay of HTTP/1.1 reads and writes.
  [[nodiscard]] Stream& origin_stream();
  [[nodiscard]] TlsStream& client() { return *client_; }
  [[nodiscard]] std::string& protocol() { return protocol_; }

  // The tunnel ends: nothing here touches it any more.
  void leave();
  [[nodiscard]] bool is_left() const { return is_left_; }

  Async<std::expected<Admission, Refused>> admit(Request& request) override;
  [[nodiscard]] const Keyring& keys() const override { return keys_; }
  Refused refuse(const Request& as_sent, std::string_view reason, std::string_view text) override;
  [[nodiscard]] bool record(const Request& as_sent, const Admission& admission,
                            int status) override;
  void tell_scrubbed(std::size_t count) override;
  void count(egress::LaneName lane, std::size_t bytes) override;

 private:
  [[nodiscard]] Async<bool> renew_for_all();
  [[nodiscard]] Async<bool> wait_for_turn();
  Refused refuse(const Request& as_sent, const Misuse& misuse, const egress::Rule* rule);
  [[nodiscard]] egress::Flow flow_of(const Request& request) const;

  Parts parts_;
  egress::Tunnel& tunnel_;
  egress::Flow flow_;
  std::string protocol_;
  std::unique_ptr<TlsStream> origin_;
  Time origin_made_;  // its handshake
  std::unique_ptr<ReusedOrigin> reused_;
  std::unique_ptr<TlsStream> client_;
  Keyring keys_;
  bool is_left_ = false;
};

}  // namespace capgate::seal
