// Who speaks TLS in a client's place, for endpoints that carry a sealed secret. capgate-broker has
// none of it: a sandbox without sealed secrets runs no TLS code at all. capgate-broker-tls brings
// one (src/seal).
//
// Connections calls it when the client's hello was read, its name was allowed and the origin was
// dialled. Both lanes of the tunnel are held, so the terminator moves the bytes itself and tells
// how many (Tunnel::add_bytes); the tunnel still ends it when it is idle, used up or over.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "egress/address.h"
#include "egress/decide.h"
#include "egress/hello.h"
#include "egress/loop.h"
#include "egress/task.h"
#include "egress/tunnel.h"

namespace capgate::egress {

// A connection to an origin that has outlived its client's, with the TLS that is spoken on it.
struct KeptOrigin {
  KeptOrigin(SocketPtr its_socket, Address its_address)
      : socket(std::move(its_socket)), address(its_address) {}
  KeptOrigin(const KeptOrigin&) = delete;
  KeptOrigin& operator=(const KeptOrigin&) = delete;
  KeptOrigin(KeptOrigin&&) = delete;
  KeptOrigin& operator=(KeptOrigin&&) = delete;
  virtual ~KeptOrigin() = default;

  SocketPtr socket;
  Address address;  // that was dialled
};
using KeptOriginPtr = std::unique_ptr<KeptOrigin>;

class Terminator {
 public:
  Terminator() = default;
  Terminator(const Terminator&) = delete;
  Terminator& operator=(const Terminator&) = delete;
  Terminator(Terminator&&) = delete;
  Terminator& operator=(Terminator&&) = delete;
  virtual ~Terminator() = default;

  struct Arrival {
    Flow flow;                // said == host, as decided
    std::string hello_bytes;  // what was read of the client, to the end of the hello or beyond
    ClientHello hello;
    Address address;     // of the tunnel's origin
    KeptOriginPtr kept;  // whose socket is the tunnel's origin now; null: it was dialled
  };
  struct Served {
    enum class How : unsigned char {
      done,               // over, in whatever way: the tunnel is to be ended as `ending` says
      taken_away,         // the tunnel has ended meanwhile: touch nothing of it
      broken_certificate  // nothing was said to the client; `text` says what is wrong
    };
    How how = How::done;
    Ending ending = Ending::closed;
    std::string text;
  };
  // Whether a connection to this endpoint is kept. Which one a client can have is not known before
  // its hello is.
  [[nodiscard]] virtual bool has_kept(const Flow& flow) const = 0;
  [[nodiscard]] virtual KeptOriginPtr take_kept(const Flow& flow, const ClientHello& hello) = 0;

  // First the origin's handshake (unless it is a kept one), then the client's, then requests until
  // the connection is over.
  virtual Async<Served> serve(Tunnel& tunnel, Arrival arrival) = 0;
  // The tunnel ends in this moment: whatever still works on it must touch nothing of it.
  virtual void ended(Tunnel& tunnel) = 0;
};

}  // namespace capgate::egress
