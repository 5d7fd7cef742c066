// Connections to origins that have served one client and can serve the next: a handshake and a
// connection less for each of them.
//
//   OriginPool pool(loop);
//   pool.keep(std::make_unique<KeptTls>(...));     // or closes it, if it is not clean
//   KeptTlsPtr kept = pool.take({endpoint, offered});   // null: none
//
// Kept is only what is silent: what an origin says while nobody has asked it would be taken for the
// answer to the next request. So whatever comes, if only a byte or an end, closes the connection.
//
// A client gets one only where its own handshake would have led to the same: the same endpoint, and
// the same protocols offered.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "egress/terminator.h"
#include "seal/tls.h"
#include "seal/tls_stream.h"

namespace capgate::seal {

struct KeptTls final : egress::KeptOrigin {
  struct Key {
    Tls::Endpoint endpoint;
    std::string offered;  // as spoken_protocols() of the client that it was made for
    friend bool operator==(const Key&, const Key&) = default;
  };
  KeptTls(egress::SocketPtr its_socket, egress::Address its_address)
      : KeptOrigin(std::move(its_socket), its_address) {}

  Key key;
  std::unique_ptr<TlsStream> stream;  // on `socket`
  Time made;                          // its handshake
  Time left;                          // by the last client
};
using KeptTlsPtr = std::unique_ptr<KeptTls>;

// Nothing has come that was not read, on any of the layers, and no end has.
[[nodiscard]] bool is_silent(egress::Socket& socket, TlsStream& stream);

class OriginPool final : public egress::Owner {
 public:
  // Common servers close idle connections after five seconds and more.
  static constexpr std::chrono::seconds longest_idle{4};
  // Then the name is resolved and the certificate verified again.
  static constexpr std::chrono::seconds longest_use{60};
  static constexpr std::size_t most_of_one_endpoint = 8;
  static constexpr std::size_t most = 32;

  explicit OriginPool(egress::Loop& loop, std::chrono::milliseconds idle = longest_idle);

  void keep(KeptTlsPtr kept);
  [[nodiscard]] KeptTlsPtr take(const KeptTls::Key& key);
  [[nodiscard]] bool has(const Tls::Endpoint& endpoint) const;
  [[nodiscard]] std::size_t size() const { return kept_.size(); }

  // A kept one has something to say, or has ended.
  void on_event(egress::Socket& socket) override;

 private:
  [[nodiscard]] Time close_idle(Time now);

  egress::Loop& loop_;
  std::chrono::milliseconds idle_;
  egress::Loop::LookId look_;
  std::vector<KeptTlsPtr> kept_;  // the one that was left first comes first
};

}  // namespace capgate::seal
