#include "sandbox/limits.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace capgate::sandbox {
namespace {

constexpr std::uint64_t kibi = 1024;
constexpr std::uint64_t mebi = kibi * kibi;
constexpr std::uint64_t gibi = kibi * mebi;

TEST(LimitText, SizesHaveTheLargestUnitThatFitsExactly) {
  EXPECT_EQ(limit_text("memory", 512 * mebi), "512M");
  EXPECT_EQ(limit_text("memory", gibi), "1G");
  EXPECT_EQ(limit_text("memory", 2 * gibi), "2G");
  EXPECT_EQ(limit_text("memory", 3 * gibi / 2), "1536M");
  EXPECT_EQ(limit_text("memory", 64 * kibi), "64K");
  EXPECT_EQ(limit_text("disk", 100), "100");
  EXPECT_EQ(limit_text("disk", 1025), "1025");
  EXPECT_EQ(limit_text("memory", kibi * gibi), "1024G");
  EXPECT_EQ(limit_text("memory", 0), "0");
}

TEST(LimitText, OthersAreCountsPercentsAndSeconds) {
  EXPECT_EQ(limit_text("pids", 1024), "1024");
  EXPECT_EQ(limit_text("files", 2048), "2048");
  EXPECT_EQ(limit_text("cpu", 150), "150%");
  EXPECT_EQ(limit_text("time", 60), "60s");
}

TEST(MemoryOfDescendants, CountsWhatAChildOfAChildHolds) {
  constexpr std::size_t held = 32 * mebi;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(ready[0]);
    if (::fork() != 0) {
      ::close(ready[1]);
      for (;;) ::pause();
    }
    void* memory =
        ::mmap(nullptr, held, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(memory, 1, held);
    const pid_t own = ::getpid();
    (void)!::write(ready[1], &own, sizeof(own));
    for (;;) ::pause();
  }
  ::close(ready[1]);
  pid_t grandchild = 0;
  ASSERT_EQ(::read(ready[0], &grandchild, sizeof(grandchild)), ssize_t{sizeof(grandchild)});
  const std::uint64_t counted = memory_of_descendants(child);
  ::kill(grandchild, SIGKILL);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  EXPECT_GE(counted, held);
  EXPECT_LT(counted, 8 * held);
}

TEST(MemoryOfDescendants, IsNothingForAProcessThatIsGone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(memory_of_descendants(child), 0U);
}

}  // namespace
}  // namespace capgate::sandbox
