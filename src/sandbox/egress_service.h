// The broker alone, for sandboxes that other engines make: `capgate egress`.
//
//   serve_egress({.policy = ..., .place = where, .audit_directory = ...})
//
// It listens at one place, starts capgate-broker as `capgate run` does, starts it again when it
// dies, and ends on SIGTERM or SIGINT.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "egress/policy.h"
#include "sandbox/bind.h"
#include "sandbox/broker.h"
#include "sandbox/egress_place.h"
#include "sandbox/host_path.h"

namespace capgate::sandbox {

struct EgressService {
  egress::Policy policy;  // its sandbox and credential are filled in
  Where where;
  std::string token_file;  // for a port
  std::string audit;       // a file, or empty: a new one in
  std::string audit_directory;
  bool json = false;  // what it listens at as JSON on stdout, not in words on stderr
};

// A broker at its place, started; it ends before the place is removed.
struct EgressBroker {
  EgressBroker(EgressPlace where, std::string log, BrokerParts parts)
      : place(std::move(where)), audit_path(std::move(log)), broker(std::move(parts)) {}

  EgressPlace place;
  std::string audit_path;
  Broker broker;
};
// `reach` is what the server can write, where the log must not lie.
[[nodiscard]] std::expected<std::unique_ptr<EgressBroker>, Refusal> start_egress(
    EgressService& service, const Bound& reach);

// Returns when it was told to end. A refusal is the reason why it does not serve, or no longer.
[[nodiscard]] std::expected<void, Refusal> serve_egress(EgressService service);

}  // namespace capgate::sandbox
