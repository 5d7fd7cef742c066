// SOCKS5 (RFC 1928) as far as a client needs it to reach a TCP endpoint: no authentication or a
// password (RFC 1929), CONNECT.
//
//   read_socks_greeting(bytes)  -> done, 3 bytes, offers "no authentication"
//   read_socks_password(bytes)  -> done, user "capgate", password "..."
//   read_socks_request(bytes)   -> done, "api.github.com" port 443
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "egress/hello.h"

namespace capgate::egress {

struct SocksGreeting {
  Progress progress = Progress::more;
  std::size_t size = 0;
  bool without_authentication = false;  // is offered
  bool with_password = false;           // is offered
};
[[nodiscard]] SocksGreeting read_socks_greeting(std::span<const std::uint8_t> bytes);

struct SocksPassword {
  Progress progress = Progress::more;
  std::size_t size = 0;
  std::string user;
  std::string password;
};
[[nodiscard]] SocksPassword read_socks_password(std::span<const std::uint8_t> bytes);

enum class SocksReply : std::uint8_t {
  succeeded = 0,
  failure = 1,
  not_allowed = 2,
  host_unreachable = 4,
  refused = 5,
  command_not_supported = 7,
  address_type_not_supported = 8,
};

struct SocksRequest {
  Progress progress = Progress::more;
  std::size_t size = 0;
  SocksReply problem = SocksReply::succeeded;  // readable, but not served: answer with this
  std::string host;  // a name as sent, unchecked, or an address in its usual form, IPv6 in brackets
  std::uint16_t port = 0;
};
[[nodiscard]] SocksRequest read_socks_request(std::span<const std::uint8_t> bytes);

// The ten bytes of an answer; the bound address is told as 0.0.0.0:0.
[[nodiscard]] std::string socks_answer(SocksReply reply);

}  // namespace capgate::egress
