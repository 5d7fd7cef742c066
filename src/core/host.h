// Hosts, ports and how a rule matches a destination. The one parser and the one matcher for names
// and addresses in capgate: emitters and the broker take these types, never strings.
//
//   const Endpoint rule = *parse_endpoint("*.GitHub.com:443");
//   matches(rule, *parse_endpoint("api.github.com:443"))  -> true
//   matches(rule, *parse_endpoint("github.com:443"))      -> false: the apex is not below itself
//
// The vectors are in tests/vectors/endpoints.tsv; every user of the matcher is tested with them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace capgate::core {

struct HostPattern {
  enum class Kind : unsigned char {
    any,         // *
    subdomains,  // *.name: one or more labels before it, not the name itself
    name,        // a DNS name
    ipv4,
    ipv6,
  };

  Kind kind = Kind::any;
  // Canonical: a name in lower case without a final dot (for subdomains, what follows "*."), an
  // IPv4 address as four decimals, an IPv6 address as RFC 5952 writes it, without brackets.
  std::string text;
  std::array<std::uint8_t, 16> address{};  // ipv4 in the first four bytes, ipv6 in all

  friend auto operator<=>(const HostPattern&, const HostPattern&) = default;
};

struct Endpoint {
  HostPattern host;
  std::optional<std::uint16_t> port;  // none: every port

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// Positions in the diagnostics count from the start of `text`. parse_host takes IPv6 with or
// without brackets, since its caller has already found where the host ends.
[[nodiscard]] Result<HostPattern> parse_host(std::string_view text);
[[nodiscard]] Result<std::uint16_t> parse_port(std::string_view text);
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

[[nodiscard]] std::string print(const HostPattern& host);  // IPv6 in brackets
[[nodiscard]] std::string print(const Endpoint& endpoint);

// True if the rule covers the destination. A destination is an endpoint without wildcards; with
// wildcards the question is whether the rule covers all of it.
[[nodiscard]] bool matches(const HostPattern& rule, const HostPattern& host);
[[nodiscard]] bool matches(const Endpoint& rule, const Endpoint& destination);

// True for addresses that do not lead to the public internet: loopback, private, link-local and
// metadata, carrier NAT, unique local, multicast, reserved, documentation, and the IPv6 forms that
// embed an IPv4 address. Decided on the address, never on a name.
[[nodiscard]] bool is_private_address(const HostPattern& address);

// True for the addresses of a site's own network (RFC 1918, carrier NAT, unique local), without the
// metadata services that clouds put there: the private ones that a person may sensibly name.
[[nodiscard]] bool is_site_address(const HostPattern& address);

// True for the private addresses that a name may lead to where its rule says private=true: those of
// a site, and those that networks use as if they were (documentation, benchmarks, class E). Never
// loopback, link-local, metadata, multicast, unspecified, or a form that embeds an IPv4 address.
[[nodiscard]] bool is_private_network_address(const HostPattern& address);

// 127.0.0.1 and ::1: what `localhost` stands for.
[[nodiscard]] bool is_localhost_address(const HostPattern& address);

// True if the pattern itself names a private endpoint (`localhost`, 10.0.0.5): only such a rule may
// reach one, and only the one that it names. Wildcards never do, and other names with private=true
// alone.
[[nodiscard]] bool names_private_endpoint(const HostPattern& host);

}  // namespace capgate::core
