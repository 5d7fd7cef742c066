// Secrets on their way to the broker: through a pipe, whose bytes are never swapped out and are
// gone when they are read. Written by the supervisor for each broker that it starts, read to its
// end by the broker before it confines itself.
//
//   sys::Fd reader = TRY(write_handover(list));        // fits the pipe's buffer: does not wait
//   std::vector<Handed> list = TRY(read_handover(fd));
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "secrets/secret.h"
#include "sys/fd.h"

namespace capgate::secrets {

struct Handed {
  std::string name;  // a variable's; "ca.key" and "ca.crt" (both DER) of the authority
  Secret value;
  std::int64_t expires = 0;  // Unix seconds; 0: never. One that expires is renewed (renewal.h).
};

inline constexpr std::size_t most_handed_bytes = 60'000;  // of all: the buffer of a pipe
inline constexpr std::string_view authority_key = "ca.key";
inline constexpr std::string_view authority_certificate = "ca.crt";

// The error says what does not fit or fails, without a byte of any value.
[[nodiscard]] std::expected<sys::Fd, std::string> write_handover(std::span<const Handed> list);
[[nodiscard]] std::expected<std::vector<Handed>, std::string> read_handover(const sys::Fd& reader);

}  // namespace capgate::secrets
