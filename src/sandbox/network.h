// The network of one run, from the supervisor's side: what is made before the sandbox starts and
// lives as long as it does.
//
//   auto network = TRY(open_network(wanted, bound));
//   launch(..., {.inner_sockets = network->inner.get()});
//   supervise(..., {.broker = &network->broker});
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "egress/policy.h"
#include "lower/plan.h"
#include "sandbox/audit_file.h"
#include "sandbox/bind.h"
#include "sandbox/broker.h"
#include "sandbox/capture.h"
#include "sandbox/lacking.h"
#include "secrets/renewal.h"

namespace capgate::sandbox {

// What the broker needs where something is sealed; empty otherwise.
struct NetworkSecrets {
  std::vector<egress::Seal> seals;
  std::vector<secrets::Handed> handed;  // their values, and the authority
  secrets::Renewer renewer;             // of what expires, or none
  std::string roots_file;               // SSL_CERT_FILE of the launcher
  std::string roots_directory;          // SSL_CERT_DIR
};

struct NetworkWanted {
  const lower::Plan& plan;
  std::string policy_hash;
  egress::EgressLimits limits;
  std::string audit;            // --audit, or empty
  std::string audit_directory;  // where a new one is made
  NetworkSecrets secrets;
  const Lacking& lacking;
};

struct Network {
  Network(BrokerParts parts, secrets::Renewer helper)
      : renewer(std::move(helper)), broker(std::move(parts)) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  Network(Network&&) = delete;
  Network& operator=(Network&&) = delete;
  ~Network() { renewer.end(); }

  secrets::Renewer renewer;
  Broker broker;
  sys::Fd inner;  // init's end of the requests for sockets
  std::string audit_path;
};

// Everything that can be refused, then the broker is started. Nothing is left by a refusal.
[[nodiscard]] std::expected<std::unique_ptr<Network>, Refusal> open_network(NetworkWanted wanted,
                                                                            const Bound& bound);

// Sockets of the host's loopback that listen at these ports, in both families.
[[nodiscard]] std::expected<std::vector<PassedSocket>, Refusal> publish(
    const std::vector<std::uint16_t>& ports);

// Names a run in the audit log.
[[nodiscard]] std::expected<std::string, Refusal> random_run_name();

// NAME=VALUE, for --proxy-env.
[[nodiscard]] std::vector<std::string> proxy_variables(std::uint16_t port);

}  // namespace capgate::sandbox
