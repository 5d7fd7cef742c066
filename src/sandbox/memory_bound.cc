#include "sandbox/memory_bound.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "base/text.h"
#include "sandbox/orders.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

constexpr std::uint64_t kibi = 1024;
constexpr std::uint64_t page = 4096;
// What a tmpfs takes for an inode with its name: Linux counts extended attributes in this unit.
constexpr std::uint64_t inode_bytes = kibi;

// The last number of a file such as tcp_rmem ("4096 131072 6291456"); 0 if there is none.
std::uint64_t last_number(const std::string& path) {
  const std::string text = sys::read_file(path, page).value_or("");
  const std::string_view all = trim(text);
  const std::size_t blank = all.find_last_of(" \t");
  const std::string_view last = blank == std::string_view::npos ? all : all.substr(blank + 1);
  std::uint64_t value = 0;
  std::from_chars(last.data(), last.data() + last.size(), value);
  return value;
}

// A descriptor is the end of a Unix, UDP or TCP socket: what it has sent and what it has received.
std::uint64_t socket_bytes(const MemoryFacts& facts) {
  const KernelBuffers& own = facts.buffers;
  const std::uint64_t tcp_receive =
      facts.tcp_is_bounded ? orders::most_tcp_buffer : own.tcp_receive;
  const std::uint64_t tcp_send = facts.tcp_is_bounded ? orders::most_tcp_buffer : own.tcp_send;
  return std::max(own.receive, tcp_receive) + std::max(own.send, tcp_send);
}

}  // namespace

KernelBuffers kernel_buffers() {
  return {.receive = last_number("/proc/sys/net/core/rmem_default"),
          .send = last_number("/proc/sys/net/core/wmem_default"),
          .tcp_receive = last_number("/proc/sys/net/ipv4/tcp_rmem"),
          .tcp_send = last_number("/proc/sys/net/ipv4/tcp_wmem"),
          .pipes = page * last_number("/proc/sys/fs/pipe-user-pages-soft")};
}

std::vector<MemoryPart> memory_parts(const MemoryFacts& facts) {
  std::uint64_t files = 0;
  std::uint64_t inodes = 0;
  for (const std::uint64_t size : facts.file_systems) {
    files += size;
    inodes += orders::tmpfs_inodes(size) * inode_bytes;
  }
  // As many again can be on their way through Unix sockets.
  const std::uint64_t descriptors = facts.files * (facts.processes + 1);
  return {
      {.what = "private memory of processes",
       .bytes = facts.memory * facts.processes,
       .by = "RLIMIT_DATA of each process; the watchdog ends the sandbox when the sum passes the "
             "limit"},
      {.what = "shared memory that processes map",
       .bytes = facts.memory,
       .by = "the watchdog, four times a second"},
      {.what = "files in private file systems, POSIX shared memory",
       .bytes = files,
       .by = "the size of each"},
      {.what = "names in private file systems", .bytes = inodes, .by = "nr_inodes of each"},
      {.what = "buffers of sockets",
       .bytes = descriptors * socket_bytes(facts),
       .by = facts.tcp_is_bounded ? "RLIMIT_NOFILE, bounds of the network namespace"
                                  : "RLIMIT_NOFILE, bounds of the host"},
      // Past the soft limit each pipe still gets two pages.
      {.what = "pipes",
       .bytes = facts.buffers.pipes + 2 * page * descriptors,
       .by = "pipe-user-pages-soft, RLIMIT_NOFILE"},
      {.what = "POSIX message queues", .bytes = message_queue_bytes, .by = "RLIMIT_MSGQUEUE"},
      {.what = "memfd, System V shared memory, semaphores and message queues",
       .bytes = 0,
       .by = "seccomp: refused"},
  };
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  std::uint64_t tenths = bytes * 10;
  while (unit + 1 < std::size(units) && tenths >= 10 * kibi) {
    tenths = (tenths + kibi - 1) / kibi;
    ++unit;
  }
  if (tenths % 10 == 0) return format("{} {}", tenths / 10, units[unit]);
  return format("{}.{} {}", tenths / 10, tenths % 10, units[unit]);
}

}  // namespace capgate::sandbox
