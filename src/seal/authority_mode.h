// `capgate-broker-tls --authority NAME...`: makes the authority of one sandbox, and what programs
// inside find it by. Run once for each sandbox, before the broker: capgate itself has no OpenSSL,
// which would cost every start.
#pragma once

#include <span>

namespace capgate::seal {

// Descriptors that it is started with, beside standard error.
inline constexpr int host_bundle_fd = 0;    // PEM, may be empty
inline constexpr int handover_fd = 1;       // a pipe: key and certificate (secrets/handover.h)
inline constexpr int merged_bundle_fd = 3;  // PEM of the host's roots and the anchor
inline constexpr int key_store_fd = 4;      // the same as JKS

inline constexpr std::size_t most_bundle_bytes = std::size_t{8} << 20U;

// The exit status; why it is not 0 stands on standard error.
[[nodiscard]] int run_authority(std::span<char*> names);

}  // namespace capgate::seal
