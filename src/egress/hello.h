// The first message of a TLS client, read from the bytes on the wire: nothing is decrypted, nothing
// is changed. It may come in several segments and in several records.
//
//   const HelloReading reading = read_client_hello(bytes);
//   reading.progress == Progress::done  ->  reading.hello.server_name == "api.github.com"
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace capgate::egress {

// Of any reader of a prefix: call it again with more bytes, from the same start.
enum class Progress : unsigned char {
  more,       // everything so far fits
  done,       //
  other,      // this is not the protocol at all
  malformed,  // it began as the protocol and is not valid
};

struct ClientHello {
  bool has_server_name = false;
  std::string server_name;       // as sent, unchecked: parse it with core::parse_host
  bool encrypted_hello = false;  // the encrypted_client_hello extension
  std::string protocols;         // ALPN's list as sent: each name after a byte of its length
};

struct HelloReading {
  Progress progress = Progress::more;
  ClientHello hello;
};

[[nodiscard]] HelloReading read_client_hello(std::span<const std::uint8_t> bytes);

}  // namespace capgate::egress
