#include "base/digest.h"

#include <sha2.h>

#include <array>
#include <cstdint>

namespace capgate {

std::string sha256_hex(std::string_view bytes) {
  SHA2_CTX context;
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256Init(&context);
  SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  SHA256Final(digest.data(), &context);

  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex(digest.size() * 2, '\0');
  for (std::size_t i = 0; i < digest.size(); ++i) {
    hex[2 * i] = digits[digest[i] >> 4];
    hex[2 * i + 1] = digits[digest[i] & 15];
  }
  return hex;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return static_cast<unsigned char>(bytes[i]);
  };
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  std::size_t at = 0;
  std::size_t to = 0;
  for (; at + 3 <= bytes.size(); at += 3, to += 4) {
    const std::uint32_t group = (byte(at) << 16) | (byte(at + 1) << 8) | byte(at + 2);
    out[to] = digits[group >> 18];
    out[to + 1] = digits[(group >> 12) & 63];
    out[to + 2] = digits[(group >> 6) & 63];
    out[to + 3] = digits[group & 63];
  }
  const std::size_t left = bytes.size() - at;
  if (left == 0) return out;
  const std::uint32_t group = (byte(at) << 16) | (left == 2 ? byte(at + 1) << 8 : 0);
  out[to] = digits[group >> 18];
  out[to + 1] = digits[(group >> 12) & 63];
  if (left == 2) out[to + 2] = digits[(group >> 6) & 63];
  return out;
}

}  // namespace capgate
