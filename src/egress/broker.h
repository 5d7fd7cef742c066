// The broker: every way out of one sandbox, and nothing else. It is given sockets that were made
// inside the sandbox's network namespace; which one a connection arrives on says whose it is.
//
//   Broker broker(policy, audit_fd, stderr_fd);
//   if (!broker.begin()) ...                          // no audit log, no network
//   broker.take(SocketKind::capture, 443, std::move(fd));
//   broker.loop().run();
//   broker.end();
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "egress/connections.h"
#include "egress/journal.h"
#include "egress/loop.h"
#include "egress/names.h"
#include "egress/policy.h"
#include "egress/rate.h"
#include "egress/wire.h"

namespace capgate::egress {

class Broker {
 public:
  Broker(Policy policy, int audit_fd, int stderr_fd);
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  Broker(Broker&&) = delete;
  Broker& operator=(Broker&&) = delete;
  ~Broker();

  // The first line of the audit log. False: it cannot be written.
  [[nodiscard]] bool begin() { return journal_.begin(); }
  // False: the kernel has no room for it.
  [[nodiscard]] bool take(wire::SocketKind kind, std::uint16_t port, sys::Fd fd);
  void set_ipv6(bool has_ipv6) { has_ipv6_ = has_ipv6; }
  // Takes no more connections, and stops the loop when the last one is over.
  Task finish();
  // Closes everything and writes the last lines.
  void end();

  [[nodiscard]] Loop& loop() { return loop_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] Journal& journal() { return journal_; }
  // It ends after the broker's end().
  void use(Terminator& terminator) { connections_.use(terminator); }

 private:
  class DnsDatagrams;
  class Refusals;
  struct Listener {
    wire::SocketKind kind;
    std::uint16_t port = 0;
  };

  Task accept(SocketPtr socket, Listener listener);
  void serve(sys::Fd client, Listener listener);
  Task serve_dns_stream(SocketPtr client);
  [[nodiscard]] bool has_room();

  Loop loop_;
  Policy policy_;
  NameBook names_;
  Journal journal_;
  Connections connections_;
  Rate rate_;
  bool has_ipv6_ = false;
  sys::Fd inner_sockets_;
  std::vector<std::uint16_t> published_;
  std::size_t dns_streams_ = 0;
  std::vector<std::unique_ptr<Owner>> readers_;
  std::vector<SocketPtr> sockets_;
  std::vector<Socket*> listeners_;
  bool is_finishing_ = false;
};

}  // namespace capgate::egress
