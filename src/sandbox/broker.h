// The supervisor's side of capgate-broker: starts it, hands it the sandbox's sockets, starts it
// again when it dies, and never leaves it behind.
//
//   Broker broker({.program = TRY(find_broker(plain_broker)), .policy = ..., .audit = ...});
//   TRY(broker.start());             returns at once: it gets ready beside the sandbox's set-up
//   broker.add(socket)               each socket that arrives from inside; complete() after the
//   last broker.step()                    when fd() is readable or deadline() is past
//
// The sockets are kept as long as the sandbox lives, so that a new broker goes on where the old one
// ended: the listening sockets, with whoever waits at them, are never closed between.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/wire.h"
#include "sandbox/host_path.h"
#include "sandbox/launch.h"
#include "secrets/handover.h"
#include "sys/fd.h"

namespace capgate::sandbox {

// One speaks TLS, for sandboxes with sealed secrets; the other has no such code at all.
inline constexpr std::string_view plain_broker = "capgate-broker";
inline constexpr std::string_view tls_broker = "capgate-broker-tls";

// The file beside the running program, opened: regular, and nobody else can write it.
[[nodiscard]] std::expected<sys::Fd, Refusal> find_broker(std::string_view name);

struct BrokerParts {
  sys::Fd program;
  sys::Fd policy;  // sealed memory (egress/policy.h)
  sys::Fd audit;
  HostUser user;  // whom it becomes if it is started by root
  // For the one that speaks TLS: handed to each that is started.
  std::vector<secrets::Handed> secrets;
  sys::Fd renewal;  // to the renewer, or none
};

struct PassedSocket {
  sys::Fd fd;
  egress::wire::SocketKind kind = egress::wire::SocketKind::capture;
  std::uint16_t port = 0;
};

class Broker {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Broker(BrokerParts parts) : parts_(std::move(parts)) {}
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  Broker(Broker&&) = delete;
  Broker& operator=(Broker&&) = delete;
  ~Broker() { end(); }

  [[nodiscard]] std::expected<void, Refusal> start();

  void add(PassedSocket socket) { sockets_.push_back(std::move(socket)); }
  void complete(bool has_ipv6);

  [[nodiscard]] int fd() const { return control_.get(); }
  [[nodiscard]] std::optional<Clock::time_point> deadline() const { return deadline_; }

  enum class Progress : unsigned char { none, server_may_start };
  // What the broker said, or its end. A refusal ends the sandbox. Never waits.
  [[nodiscard]] std::expected<Progress, Refusal> step();

  // It takes no more connections, and ends after the last one: fd() tells. False: it ends at once.
  [[nodiscard]] bool finish();

  // Lets it write its last lines; after two seconds it is killed.
  void end();

 private:
  [[nodiscard]] std::expected<void, Refusal> read_answer();
  [[nodiscard]] std::expected<void, Refusal> start_again(const std::string& why);
  [[nodiscard]] std::expected<void, Refusal> fail(const std::string& why);
  [[nodiscard]] bool hand_over();
  [[nodiscard]] std::string kill_and_reap();

  BrokerParts parts_;
  std::vector<PassedSocket> sockets_;
  bool is_complete_ = false;
  bool has_ipv6_ = false;

  sys::Fd control_;
  sys::Fd process_;  // pidfd
  bool is_ready_ = false;
  bool has_sockets_ = false;
  bool was_used_ = false;  // the server may run since the first broker had its sockets
  std::optional<Clock::time_point> deadline_;
  std::deque<Clock::time_point> restarts_;
};

}  // namespace capgate::sandbox
