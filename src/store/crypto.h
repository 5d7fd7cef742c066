// The cryptography of the store: AES-256-GCM, scrypt and HKDF of OpenSSL, with every buffer wiped.
//
//   const Secret key = TRY(random_key());
//   const Sealed sealed = TRY(seal(key, "what it is bound to", value));
//   const auto value = open(key, sealed, "what it is bound to");   // Failure::forged: anything
//   else
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "secrets/secret.h"
#include "store/problem.h"

namespace capgate::store {

inline constexpr std::size_t key_size = 32;
inline constexpr std::size_t nonce_size = 12;
inline constexpr std::size_t tag_size = 16;
inline constexpr std::size_t salt_size = 16;

enum class Failure : unsigned char {
  forged,   // the key, the bytes or what they are bound to is another
  library,  // OpenSSL
  memory,   // none can be locked
};

// For what cannot be forged: making keys, sealing.
[[nodiscard]] Problem problem_of(Failure failure);

struct Sealed {
  std::string nonce;
  std::string bytes;  // as long as what is sealed, and the tag

  friend bool operator==(const Sealed&, const Sealed&) = default;
};

// The nonce is random and new with each call.
[[nodiscard]] std::expected<Sealed, Failure> seal(const secrets::Secret& key,
                                                  std::string_view associated,
                                                  std::string_view plain);
[[nodiscard]] std::expected<secrets::Secret, Failure> open(const secrets::Secret& key,
                                                           const Sealed& sealed,
                                                           std::string_view associated);

[[nodiscard]] std::expected<secrets::Secret, Failure> random_key();
[[nodiscard]] std::expected<std::string, Failure> random_bytes(std::size_t size);  // not secret

// A passphrase: slow on purpose, `cost` is scrypt's N. Blocks of 8, one lane.
[[nodiscard]] std::expected<secrets::Secret, Failure> stretch(std::string_view passphrase,
                                                              std::string_view salt,
                                                              std::uint64_t cost);
// Bytes that nobody can guess anyway.
[[nodiscard]] std::expected<secrets::Secret, Failure> extract(std::string_view material,
                                                              std::string_view salt);

// Before the first call: no configuration file and no variable loads code into this process.
[[nodiscard]] bool start_crypto();

}  // namespace capgate::store
