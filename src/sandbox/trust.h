// What programs inside must trust where secrets are sealed: the broker answers there in the
// endpoint's place, with a certificate of an authority that exists for this sandbox alone.
//
//   const Trust trust = TRY(make_trust(plan.seals, environment));
//
// Made by capgate-broker-tls, which is run once for it: capgate has no OpenSSL. The files are put
// into the sandbox by trust_files.h; key and certificate go to each broker.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "lower/plan.h"
#include "sandbox/host_path.h"
#include "secrets/secret.h"

namespace capgate::sandbox {

struct Trust {
  secrets::Secret key;          // DER, of the authority
  secrets::Secret certificate;  // DER
  std::string bundle;           // PEM: the host's roots, and at its end the sandbox's anchor
  std::string key_store;        // JKS: the same
};

// Each host that a value may go to, once.
[[nodiscard]] std::vector<std::string> sealed_hosts(const std::vector<lower::PlanSeal>& seals);

// The file with the roots that programs of the host trust: what SSL_CERT_FILE names, or the first
// well-known one that is there. Empty: the host has none.
[[nodiscard]] std::string find_host_bundle(const std::vector<std::string>& environment);

// Places of a bundle that programs know without being told.
[[nodiscard]] std::vector<std::string> well_known_bundles();

[[nodiscard]] std::expected<Trust, Refusal> make_trust(const std::vector<lower::PlanSeal>& seals,
                                                       const std::vector<std::string>& environment);

}  // namespace capgate::sandbox
