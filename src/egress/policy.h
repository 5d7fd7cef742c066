// The broker's orders: the `egress` object of the Plan, and what only this run knows.
//
//   {"server": "github", "sandbox": "5f2c9a11", "policyHash": "sha256:...",
//    "rules": [{"capability": "net:connect:api.github.com:443", "at": "github.json:12:7"}],
//    "seals": [{"capability": "env:inject:GITHUB_TOKEN?to=api.github.com:443",
//               "placeholder": "ghp_...", "at": "github.json:13:7"}],
//    "roots": {"file": "", "directory": ""},
//    "publicOnly": false,
//    "lacking": ["net:connect:uploads.github.com:443"], "proxyCredential": "",
//    "limits": {"connections": 512, "perSecond": 100, "requestsPerSecond": 1000, "bytes": 0,
//    "idleSeconds": 900,
//               "headBytes": 65536, "helloSeconds": 15, "dialSeconds": 20}}
//
// Written by the supervisor, read once, strictly: an unknown key, a capability that does not parse
// or a limit that is no number is an error, and the broker does not start.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/decide.h"

namespace capgate::egress {

// 0 means no limit, where that is said.
struct EgressLimits {
  std::uint32_t connections = 512;           // live at once
  std::uint32_t per_second = 100;            // new ones; the first second may have twice as many
  std::uint32_t requests_per_second = 1000;  // allowed ones, on terminated connections
  std::uint64_t bytes = 0;  // both directions, all connections together; 0: any number
  std::uint32_t idle_seconds = 900;
  std::uint32_t head_bytes = 65536;  // of a TLS hello or an HTTP head
  std::uint32_t hello_seconds = 15;  // until it has arrived
  std::uint32_t dial_seconds = 20;   // until the origin has answered
};

// A sealed variable: what stands for it inside, and where its value may go. The value itself comes
// another way (wire::secrets_fd).
struct Seal {
  core::EnvCapability env;
  std::string placeholder;
  std::string position;  // where it is declared
};

struct Policy {
  std::string server;
  std::string sandbox;  // names this run in the audit log
  std::string hash;
  std::vector<Rule> rules;
  std::vector<Seal> seals;
  // What origins of terminated connections are verified against: SSL_CERT_FILE and SSL_CERT_DIR of
  // the launcher; empty: the host's own.
  std::string roots_file;
  std::string roots_directory;
  // What clients of the proxy must show (egress/credential.h); empty: nothing.
  std::string proxy_credential;
  bool public_only = false;  // assert:fetch.block_rfc1918: private addresses even if named
  // What the catalog's manifest for this server has and this policy has not: nothing is decided by
  // it, but a question for a name has no port, so this is where a hint has one from.
  std::vector<core::NetConnect> lacking;
  EgressLimits limits;
};

// True if a secret may go there: such connections are terminated.
[[nodiscard]] bool is_sealed(const Policy& policy, const core::HostPattern& host,
                             std::uint16_t port);

[[nodiscard]] Result<Policy> read_policy(std::string_view json);
[[nodiscard]] std::string print_policy(const Policy& policy);

}  // namespace capgate::egress
