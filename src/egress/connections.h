// The life of a connection of the sandbox: decided, recorded, dialled, joined.
//
//   captured    a program connected to an address; its kernel led it here
//   proxied     a program asked this broker as its proxy (CONNECT, absolute-form, SOCKS5)
//   inbound     somebody on the host connected to a published port
//
// Each is one coroutine. The order of its steps is the order of its lines: nothing is dialled
// before a rule covers the endpoint and the audit log has the line; no byte of the client leaves
// before what it says was allowed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "egress/address.h"
#include "egress/dial.h"
#include "egress/journal.h"
#include "egress/names.h"
#include "egress/opening.h"
#include "egress/policy.h"
#include "egress/resolver.h"
#include "egress/terminator.h"
#include "egress/tunnel.h"
#include "egress/wire.h"

namespace capgate::egress {

class Connections {
 public:
  Connections(Loop& loop, const Policy& policy, NameBook& names, Journal& journal);

  // For endpoints that carry a secret; without one they are refused. It outlives this.
  void use(Terminator& terminator) { terminator_ = &terminator; }

  Task captured(SocketPtr client, Address to, std::uint16_t port);
  Task proxied(SocketPtr client);
  // `inner` gives sockets of the sandbox's namespace.
  using InnerSockets = std::function<sys::Fd(wire::Family family)>;
  Task inbound(SocketPtr client, std::uint16_t port, InnerSockets inner);

  // What a program means by an address of its namespace: the name that it was given for, or the
  // address itself.
  [[nodiscard]] core::HostPattern host_behind(const Address& to, std::uint16_t port);

  // Counts those that are being set up, too.
  [[nodiscard]] std::size_t live() const { return tunnels_.size() + opening_; }
  [[nodiscard]] bool is_used_up() const { return tunnels_.is_used_up(); }
  void tell_used_up();
  void end_all();

 private:
  // How a proxy's client is answered.
  enum class Manner : unsigned char { none, http, socks };
  // One flow, from the first thing known of it to the tunnel.
  struct Attempt {
    FlowRecord record;
    Flow flow;
    Verdict verdict;
    Opening opening;
    Manner manner = Manner::none;
    bool is_proxied_http = false;  // absolute-form: heads are rewritten
    Address dialled;
    KeptOriginPtr kept;
  };
  // A connection that is no tunnel yet.
  class Counted {
   public:
    explicit Counted(std::size_t& count) : count_(&count) { ++count; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    Counted(Counted&&) = delete;
    Counted& operator=(Counted&&) = delete;
    ~Counted() { done(); }
    void done() {
      if (count_ != nullptr) --*std::exchange(count_, nullptr);
    }

   private:
    std::size_t* count_;
  };

  [[nodiscard]] Attempt begin(core::HostPattern host, std::uint16_t port,
                              std::string_view protocol);

  // Each is false when the flow is refused; it has been told then.
  [[nodiscard]] bool is_allowed(Attempt& attempt);
  [[nodiscard]] bool is_spoken_well(Attempt& attempt, Heard heard);
  [[nodiscard]] Async<Dialled> admit(Socket& client, Attempt& attempt);
  [[nodiscard]] Async<Dialled> open(Attempt& attempt);
  [[nodiscard]] bool may_have_kept(const Attempt& attempt) const;
  [[nodiscard]] bool take_kept(Attempt& attempt);
  [[nodiscard]] bool is_recorded(Attempt& attempt);
  [[nodiscard]] Async<std::vector<Address>> find_addresses(Attempt& attempt);
  void refuse(const Attempt& attempt, std::string_view reason, std::string_view text);

  Async<bool> carry(SocketPtr client, SocketPtr origin, Attempt attempt);
  Async<bool> hear_beside_origin(Tunnel& tunnel, Attempt& attempt);
  Async<bool> pass_on(Tunnel& tunnel, Opening& opening, std::size_t size);
  Async<bool> pass_opening(Tunnel& tunnel, Attempt& attempt);

  // TLS that carries secrets.
  Async<bool> terminate(Tunnel& tunnel, Attempt& attempt);
  Async<bool> show_certificate(Tunnel& tunnel, Attempt& attempt);
  Async<bool> pass_handshake(Tunnel& tunnel, std::string_view opening);

  // Plain HTTP: every request of the connection is looked at.
  Async<bool> pass_requests(Tunnel& tunnel, Attempt attempt);
  Async<bool> pass_upgrade(Tunnel& tunnel, Attempt& attempt);
  Async<bool> pass_body(Tunnel& tunnel, Attempt& attempt);
  Async<bool> read_next_head(Tunnel& tunnel, Attempt& attempt);
  [[nodiscard]] bool is_same_place(const Attempt& attempt);
  // A placeholder in plain text would be sent on to somebody it is not for.
  [[nodiscard]] bool shows_placeholder(const Attempt& attempt, std::string_view bytes);

  [[nodiscard]] core::HostPattern meant_by(const core::HostPattern& host, std::uint16_t port);
  Async<std::optional<Attempt>> hear_proxy_client(Socket& client);
  Async<std::optional<Attempt>> hear_http_proxy_client(Socket& client, std::string bytes);
  Async<std::optional<Attempt>> hear_socks_client(Socket& client, std::string bytes);
  Async<bool> greet_socks_client(Socket& client, std::string& bytes, Time deadline);
  Async<bool> refuse_client(Socket& client, Manner manner);
  Async<bool> read_more(Socket& client, std::string& bytes, Time deadline);
  Async<bool> answer_connected(Socket& client, const Attempt& attempt);
  Async<bool> answer(Socket& client, const Attempt& attempt, std::string_view http, unsigned socks);

  Loop& loop_;
  const Policy& policy_;
  NameBook& names_;
  Journal& journal_;
  Resolver resolver_;
  OwnAddresses own_;
  Tunnels tunnels_;
  Terminator* terminator_ = nullptr;
  std::vector<std::uint64_t> redialling_;  // numbers of flows
  std::size_t opening_ = 0;
};

}  // namespace capgate::egress
