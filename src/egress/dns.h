// The sandbox's resolver: answers from the policy alone and asks nobody.
//
//   std::array<std::uint8_t, 1232> out;
//   const DnsReply reply = answer_dns(query, zone, out);
//   if (reply.size != 0) send(out, reply.size);
//
// An allowed name gets its synthetic address (A, AAAA), nothing for HTTPS, SVCB and other types
// that clients ask beside them, and its name back for PTR of a synthetic address. Other names are
// NXDOMAIN, other types of theirs too where the question is harmless, else REFUSED. What is no
// query with one question gets FORMERR or NOTIMP; what has no readable header gets nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/host.h"
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
    denied,     // a name that no rule covers, or a type that is not served
    malformed,  // no query that this resolver reads
  };
  Kind kind = Kind::none;
  std::size_t size = 0;    // bytes of the reply
  std::string name;        // what was asked, escaped if it is no host name
  std::uint16_t type = 0;  // 1: A, 28: AAAA ...
};

// `out` should hold 1232 bytes; a reply is never longer, nor longer than a client without EDNS
// takes.
[[nodiscard]] DnsReply answer_dns(std::span<const std::uint8_t> query, const Zone& zone,
                                  std::span<std::uint8_t> out);

}  // namespace capgate::egress
