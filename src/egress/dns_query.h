// A DNS query as it came over the wire (RFC 1035, RFC 6891), read strictly.
//
//   const auto header = read_dns_header(bytes);  // none: not worth an answer
//   const auto query = read_dns_query(bytes);    // none: FORMERR
//
// One question, no compression, nothing besides but one OPT record, nothing behind it: what a
// resolver in a program sends. Everything else is refused, so that no two readers can disagree.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace capgate::egress {

inline constexpr std::size_t dns_header_size = 12;

struct DnsHeader {
  std::uint16_t id = 0;
  bool is_response = false;
  std::uint8_t opcode = 0;
  bool recursion_desired = false;
  bool checking_disabled = false;
};

struct DnsQuery {
  std::span<const std::uint8_t> question;  // name, type and class as they came
  std::string name;  // "a.test"; escaped with '\', which no host name has, where it is unusual
  std::uint16_t type = 0;
  std::uint16_t class_number = 0;
  std::optional<std::uint8_t> edns_version;  // none: the client does not speak EDNS
};

[[nodiscard]] std::optional<DnsHeader> read_dns_header(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<DnsQuery> read_dns_query(std::span<const std::uint8_t> bytes);

}  // namespace capgate::egress
