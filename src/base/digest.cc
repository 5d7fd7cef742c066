#include "base/digest.h"

#include <sha2.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "base/sha256_x86.h"

namespace capgate {
namespace {

using Digest = std::array<std::uint8_t, SHA256_DIGEST_LENGTH>;

using Hex = std::span<char, 64>;

void to_hex(const Digest& digest, Hex hex) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (std::size_t i = 0; i < digest.size(); ++i) {
    hex[2 * i] = digits[digest[i] >> 4];
    hex[2 * i + 1] = digits[digest[i] & 15];
  }
}

void store_big_endian(std::uint8_t* out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = static_cast<std::uint8_t>(value >> (8 * (size - 1 - i)));
  }
}

// Whole blocks where they lie; the rest with its padding (FIPS 180-4, 5.1.1) in one or two more.
Digest sha256_by_processor(std::string_view bytes) {
  constexpr std::size_t block = 64;
  Sha256State state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const std::size_t whole = bytes.size() / block;
  const std::size_t rest = bytes.size() % block;
  sha256_blocks(state, data, whole);

  std::array<std::uint8_t, 2 * block> tail{};
  if (rest > 0) std::memcpy(tail.data(), data + whole * block, rest);
  tail[rest] = 0x80;
  const std::size_t tail_size = rest + 9 <= block ? block : 2 * block;
  store_big_endian(tail.data() + tail_size - 8, std::uint64_t{bytes.size()} * 8, 8);
  sha256_blocks(state, tail.data(), tail_size / block);

  Digest digest{};
  for (std::size_t i = 0; i < state.size(); ++i) {
    store_big_endian(digest.data() + 4 * i, state[i], 4);
  }
  return digest;
}

Digest sha256_portable(std::string_view bytes) {
  SHA2_CTX context;
  Digest digest{};
  SHA256Init(&context);
  SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  SHA256Final(digest.data(), &context);
  return digest;
}

}  // namespace

void sha256_hex(std::string_view bytes, Hex hex) {
  to_hex(has_sha_instructions() ? sha256_by_processor(bytes) : sha256_portable(bytes), hex);
}

std::string sha256_hex(std::string_view bytes) {
  std::string hex(Hex::extent, '\0');
  sha256_hex(bytes, Hex(hex.data(), Hex::extent));
  return hex;
}

std::string sha256_hex_portable(std::string_view bytes) {
  std::string hex(Hex::extent, '\0');
  to_hex(sha256_portable(bytes), Hex(hex.data(), Hex::extent));
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
