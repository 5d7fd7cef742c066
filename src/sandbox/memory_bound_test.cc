#include "sandbox/memory_bound.h"

#include <gtest/gtest.h>

#include "sandbox/orders.h"

namespace capgate::sandbox {
namespace {

constexpr std::uint64_t kibi = 1024;
constexpr std::uint64_t mebi = kibi * kibi;

std::uint64_t bytes_of(const MemoryFacts& facts, std::string_view what) {
  for (const MemoryPart& part : memory_parts(facts)) {
    if (part.what == what) return part.bytes;
  }
  ADD_FAILURE() << what;
  return 0;
}

TEST(MemoryParts, EachIsTheProductOfItsBounds) {
  MemoryFacts facts{.memory = 128 * mebi,
                    .processes = 4,
                    .files = 100,
                    .file_systems = {16 * mebi, 16 * mebi},
                    .buffers = {.receive = 400,
                                .send = 500,
                                .tcp_receive = 6 * mebi,
                                .tcp_send = 4 * mebi,
                                .pipes = 64 * mebi},
                    .tcp_is_bounded = false};
  EXPECT_EQ(bytes_of(facts, "private memory of processes"), 512 * mebi);
  EXPECT_EQ(bytes_of(facts, "files in private file systems, POSIX shared memory"), 32 * mebi);
  EXPECT_EQ(bytes_of(facts, "names in private file systems"), 2 * (8192 + 1024) * kibi);
  EXPECT_EQ(bytes_of(facts, "buffers of sockets"), 500 * 10 * mebi);
  facts.tcp_is_bounded = true;
  EXPECT_EQ(bytes_of(facts, "buffers of sockets"), 500 * 2 * orders::most_tcp_buffer);
  EXPECT_EQ(bytes_of(facts, "pipes"), 64 * mebi + std::uint64_t{500} * 2 * 4096);
}

TEST(MemoryParts, TheTextForInitIsTheNumberInTheSum) {
  EXPECT_TRUE(std::string_view(orders::tcp_receive_buffers).ends_with(" 425984"));
  EXPECT_TRUE(std::string_view(orders::tcp_send_buffers).ends_with(" 425984"));
  EXPECT_EQ(orders::most_tcp_buffer, 425984U);
}

TEST(KernelBuffers, AreReadFromThisKernel) {
  const KernelBuffers found = kernel_buffers();
  EXPECT_GE(found.receive, 64 * kibi);
  EXPECT_GE(found.send, 64 * kibi);
  EXPECT_GE(found.tcp_receive, 64 * kibi);
  EXPECT_GE(found.tcp_send, 64 * kibi);
}

TEST(BytesText, IsRoundedUp) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(2 * kibi), "2 KiB");
  EXPECT_EQ(bytes_text(mebi + 1), "1.1 MiB");
  EXPECT_EQ(bytes_text(2048 * mebi), "2 GiB");
}

}  // namespace
}  // namespace capgate::sandbox
