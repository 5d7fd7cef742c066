// The sandbox's resolver: answers from the policy alone and asks nobody.
//
//   std::array<std::uint8_t, 1232> out;
//   const DnsReply reply = answer_dns(query, zone, out);
//   if (reply.size != 0) send(out, reply.size);
//
// An allowed name gets its synthetic address (A, AAAA) and an empty answer for every other type.
// PTR of a synthetic address gives the name back. `localhost` and what is below it is the sandbox's
// own loopback, whatever the policy (RFC 6761). Another name is NXDOMAIN for the types that clients
// ask when they connect, REFUSED for the rest. What is no query with one question gets FORMERR or
// NOTIMP; a response, or what has no readable header, gets nothing.
//
// Negative answers carry no SOA: resolvers in programs do not need one, and none should remember
// for long that a name does not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "egress/names.h"
#include "egress/policy.h"

namespace capgate::egress {

// What it answers from.
struct Zone {
  const Policy& policy;
  NameBook& names;
  bool ipv6 = true;  // false: AAAA is empty
};

struct DnsReply {
  enum class Kind : unsigned char {
    none,       // not worth an answer
    answered,   // an allowed name
    denied,     // a name that no rule covers, an address that no name has, or a class but IN
    malformed,  // no query that this resolver reads; name and type are not known
  };
  Kind kind = Kind::none;
  std::size_t size = 0;    // bytes of the reply
  std::string name;        // what was asked: canonical, or escaped if it is no host name
  std::uint16_t type = 0;  // 1: A, 28: AAAA ...
};

// `out` should hold 512 bytes; a reply is never longer, so every client takes it, over UDP without
// EDNS too. One that does not fit is not given. The framing of DNS over TCP is the caller's.
[[nodiscard]] DnsReply answer_dns(std::span<const std::uint8_t> query, const Zone& zone,
                                  std::span<std::uint8_t> out);

}  // namespace capgate::egress
