// Hellos as clients send them, as hexadecimal digits, and hellos built from parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "egress/http_text.h"

namespace capgate::support {

using ByteVector = std::vector<std::uint8_t>;

// OpenSSL 3.0 to api.github.com, TLS 1.3, with ALPN.
inline constexpr std::string_view openssl_tls13 =
    "1603010200010001fc03032190f9e954b9ca46b559fcd98cc7f8d90e2bdd511fe39061ad61a2f94faf15d720"
    "043d8884d5af9b80823dff6c4b8125b4e22c59d41dbc242a881b3717463199d50024130213031301c02cc030"
    "c02bc02fcca9cca8c024c028c023c027009f009e006b006700ff0100018f00000013001100000e6170692e67"
    "69746875622e636f6d000b000403000102000a00160014001d0017001e001900180100010101020103010400"
    "2300000010000e000c02683208687474702f312e310016000000170000000d002a0028040305030603080708"
    "080809080a080b080408050806040105010601030303010302040205020602002b00050403040303002d0002"
    "0101003300260024001d002005d05a8be2ba3e3eeb2ccea011769253168c6b226622149e8dab8e453f983e65"
    "001500cd00000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000";

// The same program to objects.github.com, TLS 1.2 at most.
inline constexpr std::string_view openssl_tls12 =
    "16030100b8010000b403034a312d9d5d4a014e183d42ba168ab1eb83d92ef900346bd484bfa7b6aca18e3800"
    "001ec02cc030c02bc02fcca9cca8c024c028c023c027009f009e006b006700ff0100006d0000001700150000"
    "126f626a656374732e6769746875622e636f6d000b000403000102000a000c000a001d0017001e0019001800"
    "2300000016000000170000000d002a0028040305030603080708080809080a080b0804080508060401050106"
    "01030303010302040205020602";

// The same without a name.
inline constexpr std::string_view openssl_nameless =
    "160301009d01000099030370676ff94d67ff67d4bc192f9e84003f99edb2e5bfa6a1932f1ebac7d84f91ba00"
    "001ec02cc030c02bc02fcca9cca8c024c028c023c027009f009e006b006700ff01000052000b000403000102"
    "000a000c000a001d0017001e00190018002300000016000000170000000d002a002804030503060308070808"
    "0809080a080b080408050806040105010601030303010302040205020602";

[[nodiscard]] inline ByteVector from_hex(std::string_view digits) {
  ByteVector bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(*egress::hex_digit(digits[i]) << 4U |
                                              *egress::hex_digit(digits[i + 1])));
  }
  return bytes;
}

inline void append(ByteVector& out, const ByteVector& more) {
  out.insert(out.end(), more.begin(), more.end());
}

[[nodiscard]] inline ByteVector number(std::size_t value, std::size_t size) {
  ByteVector bytes;
  while (size-- > 0) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * size)));
  return bytes;
}

// The content after its length, which takes `length_size` bytes.
[[nodiscard]] inline ByteVector vector(std::size_t length_size, const ByteVector& content) {
  ByteVector bytes = number(content.size(), length_size);
  append(bytes, content);
  return bytes;
}

[[nodiscard]] inline ByteVector concat(const std::vector<ByteVector>& parts) {
  ByteVector bytes;
  for (const ByteVector& part : parts) append(bytes, part);
  return bytes;
}

[[nodiscard]] inline ByteVector extension(std::size_t type, const ByteVector& content) {
  return concat({number(type, 2), vector(2, content)});
}

[[nodiscard]] inline ByteVector name_entry(std::string_view name, std::uint8_t type = 0) {
  return concat({{type}, vector(2, ByteVector(name.begin(), name.end()))});
}

[[nodiscard]] inline ByteVector server_name(std::string_view name) {
  return extension(0, vector(2, name_entry(name)));
}

struct HelloParts {
  std::size_t version = 0x0303;
  ByteVector session = ByteVector(32, 0x5a);
  ByteVector suites = {0x13, 0x01, 0x13, 0x02};
  ByteVector compressions = {0};
  std::vector<ByteVector> extensions;
  ByteVector after;  // what follows the extensions
};

// The body of the message, without its head.
[[nodiscard]] inline ByteVector hello_body(const HelloParts& parts) {
  return concat({number(parts.version, 2), ByteVector(32, 0xa5), vector(1, parts.session),
                 vector(2, parts.suites), vector(1, parts.compressions),
                 vector(2, concat(parts.extensions)), parts.after});
}

[[nodiscard]] inline ByteVector hello_message(const ByteVector& body) {
  return concat({{1}, vector(3, body)});
}

[[nodiscard]] inline ByteVector record(const ByteVector& payload, std::uint8_t type = 22,
                                       std::size_t version = 0x0301) {
  return concat({{type}, number(version, 2), vector(2, payload)});
}

// In one record.
[[nodiscard]] inline ByteVector hello_with(const std::vector<ByteVector>& extensions) {
  return record(hello_message(hello_body({.extensions = extensions})));
}

// The shape of a browser's: reserved values (GREASE) in suites, groups, versions and at both ends
// of the extensions, a key share of a kilobyte, encrypted_client_hello.
[[nodiscard]] inline ByteVector browser_hello(std::string_view name) {
  const ByteVector share = concat({number(0x5a5a, 2), vector(2, {0}), number(0x11ec, 2),
                                   vector(2, ByteVector(1216, 0x77)), number(0x001d, 2),
                                   vector(2, ByteVector(32, 0x33))});
  const ByteVector encrypted = concat({{0},
                                       number(1, 2),
                                       number(1, 2),
                                       {0x42},
                                       vector(2, ByteVector(32, 0x99)),
                                       vector(2, ByteVector(208, 0x66))});
  HelloParts parts;
  parts.suites = {0x1a, 0x1a, 0x13, 0x01, 0x13, 0x02, 0x13, 0x03, 0xc0, 0x2b};
  parts.extensions = {extension(0x2a2a, {}),
                      extension(0x0017, {}),
                      extension(0x0033, vector(2, share)),
                      extension(0x0010, vector(2, {2, 'h', '2'})),
                      extension(0xfe0d, encrypted),
                      server_name(name),
                      extension(0x002b, vector(1, {0x3a, 0x3a, 3, 4, 3, 3})),
                      extension(0x4469, vector(2, {2, 'h', '2'})),
                      extension(0x8a8a, {0})};
  return record(hello_message(hello_body(parts)));
}

}  // namespace capgate::support
