// The broker alone, for sandboxes that other engines make: `capgate egress`.
//
//   serve_egress({.policy = ..., .place = where, .audit_directory = ...})
//
// It listens at one place, starts capgate-broker as `capgate run` does, starts it again when it
// dies, and ends on SIGTERM or SIGINT.
#pragma once

#include <expected>
#include <string>

#include "egress/policy.h"
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

// Returns when it was told to end. A refusal is the reason why it does not serve, or no longer.
[[nodiscard]] std::expected<void, Refusal> serve_egress(EgressService service);

}  // namespace capgate::sandbox
