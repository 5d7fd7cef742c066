// How much memory a sandbox can hold at the very most where no cgroup counts it.
//
// rlimits and the watchdog hold what processes map. Everything else that costs memory has a bound
// of its own, or is refused there (memfd and System V objects: lower/seccomp.h). This adds the
// bounds up, for the report: the sum is larger than limit:memory, and whoever reads it should know
// by how much.
//
//   for (const MemoryPart& part : memory_parts(facts)) part.what, part.bytes, part.by
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capgate::sandbox {

// POSIX message queues of one sandbox: Linux's default for a user.
inline constexpr std::uint64_t message_queue_bytes = 819'200;

// What this kernel gives to sockets and pipes.
struct KernelBuffers {
  std::uint64_t receive = 0;      // that a socket starts with, and keeps: the filter skips
  std::uint64_t send = 0;         // SO_RCVBUF and SO_SNDBUF
  std::uint64_t tcp_receive = 0;  // most that a TCP socket grows to by itself
  std::uint64_t tcp_send = 0;
  std::uint64_t pipes = 0;  // of all pipes of one user
};
[[nodiscard]] KernelBuffers kernel_buffers();

struct MemoryFacts {
  std::uint64_t memory = 0;                 // limit:memory
  std::uint64_t processes = 1;              // limit:pids, or 1 where there are no children
  std::uint64_t files = 0;                  // limit:files
  std::vector<std::uint64_t> file_systems;  // sizes of the private ones
  KernelBuffers buffers;
  bool tcp_is_bounded = false;  // init could write the bounds of orders.h
};

struct MemoryPart {
  std::string_view what;
  std::uint64_t bytes = 0;
  std::string_view by;
};
[[nodiscard]] std::vector<MemoryPart> memory_parts(const MemoryFacts& facts);

// "1.9 GiB"; rounded up.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

}  // namespace capgate::sandbox
