// Whether a connection may be made: the one decision of the broker, as a pure function.
//
//   const Policy policy = *read_policy(json);
//   decide(policy, {.host = *core::parse_host("api.github.com"), .port = 443})
//       -> allowed, by the rule net:connect:api.github.com:443 of github.json:12:7
//
// A flow is asked about several times while more of it becomes known: first where it goes, then
// what it says (the name in TLS or HTTP), then which address the name led to. Each answer holds for
// what is known then; a flow that is denied stays denied. Of several rules that allow it the most
// specific one explains the verdict; if none does, the most specific one that covers its endpoint.
//
//   where    A rule covers the endpoint (core::matches). Names do not cover addresses.
//   speech   TLS and HTTP must name the flow's own host, not merely one that is allowed too. An
//            address has no name that could be compared: its rule vouches for the address, so TLS
//            to it may say any name or none, while HTTP must say the address. With sni=any anything
//            may be said.
//   request  methods= and paths= hold for plain HTTP, and inside TLS for each request where the
//            broker terminates it: there the hello alone is allowed, then every request is asked
//            about. Elsewhere inside TLS they are not seen, and the compiler refuses such rules.
//            A field by which servers replace the method or the path (overrides.h) is refused.
//   address  A private address, or one of this host's own, is dialled only if the rule names that
//            address. A name does not lead to one, whatever other rule names it: who controls the
//            name's zone would choose it. With private=true it leads into private networks, but
//            not to loopback, link-local, metadata and this host. `localhost` leads to 127.0.0.1
//            and ::1 alone.
//
// The vectors are in tests/vectors/flows.tsv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/capability.h"

namespace capgate::egress {

struct Rule {
  core::NetConnect connect;
  std::string text;      // the capability, as print() writes it
  std::string position;  // where it is declared: "github.json:12:7"
};

struct Policy;  // egress/policy.h

// What the first bytes of the client are.
enum class Speech : unsigned char {
  unknown,  // not looked at yet, or the server speaks first
  tls,
  http,  // strict HTTP/1.1
  other,
};

struct Flow {
  core::HostPattern host;  // what the program asked for: a name or an address, never a wildcard
  std::uint16_t port = 0;

  Speech speech = Speech::unknown;
  std::optional<core::HostPattern> said;   // the name in SNI or Host; none: nothing was said
  std::optional<std::uint16_t> said_port;  // HTTP: the port in Host, if it has one
  bool said_is_invalid = false;            // something was said that is no host
  bool encrypted_hello = false;            // TLS: an ECH extension, so `said` is the outer name
  // The endpoint carries a sealed secret, so TLS to it is terminated and its requests are seen.
  bool terminated = false;
  std::string method;  // HTTP, or a request inside TLS that is terminated; empty: none is known yet
  std::string path;    // the same request's target without its query
  std::string override_field;  // the name of a field of it that changes one of them for the server

  std::optional<core::HostPattern> address;  // what is going to be dialled
  bool address_is_own = false;               // it is one of this host's
};

enum class Reason : unsigned char {
  allowed,
  no_rule,             // no rule covers the endpoint
  no_name,             // TLS without SNI, HTTP without Host
  other_name,          // SNI or Host names something else
  inner_name_unknown,  // ECH under sni=strict
  not_spoken_here,     // neither TLS nor HTTP/1.1 on port 80 or 443, or not the rule's proto=
  other_method,
  other_path,
  override_field,  // methods= or paths=, and a field by which servers replace them
  private_address,
  own_address,
};

struct Verdict {
  Reason reason = Reason::no_rule;
  const Rule* rule = nullptr;          // that allows it, or that comes closest
  bool inner_name_unverified = false;  // allowed, with ECH
  bool client_speaks_first = false;    // every rule that allows it asks what is spoken
  bool public_only = false;            // of the policy: no rule can open a private address

  [[nodiscard]] bool is_allowed() const { return reason == Reason::allowed; }
};

[[nodiscard]] Verdict decide(const Policy& policy, const Flow& flow);

// True if some rule could allow the name on some port: whether DNS answers for it.
[[nodiscard]] bool is_name_allowed(const Policy& policy, const core::HostPattern& name);

// True if the broker must see what the client says before it dials: ports 80 and 443 without
// proto=tcp, rules with proto=tls, proto=http, methods= or paths=, and endpoints where TLS is
// terminated. On others the server may speak first.
[[nodiscard]] bool must_speak_first(const Verdict& verdict);

// In words, for people: "SNI names evil.test".
[[nodiscard]] std::string explain(const Verdict& verdict, const Flow& flow);

// The capability that would allow the flow, or nothing if none should be suggested. It parses.
[[nodiscard]] std::string remedy(const Verdict& verdict, const Flow& flow);

[[nodiscard]] std::string_view reason_name(Reason reason);  // "no-rule", for programs

}  // namespace capgate::egress
