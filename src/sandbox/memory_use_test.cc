#include "sandbox/memory_use.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace capgate::sandbox {
namespace {

constexpr std::uint64_t mebi = 1024 * 1024;

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

// The pages are dropped from the process's tables and stay in memory.
TEST(MemoryOfDescendants, CountsSharedPagesThatWereDropped) {
  constexpr std::size_t held = 32 * mebi;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    void* memory = ::mmap(nullptr, held, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    std::memset(memory, 1, held);
    ::madvise(memory, held, MADV_DONTNEED);
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const std::uint64_t counted = memory_of_descendants(child);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_GE(counted, held);
}

TEST(SharedMappings, AreCountedOnceForEachInode) {
  SharedMappings found;
  constexpr std::string_view maps =
      "55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]\n"
      "7f0000000000-7f0000100000 rw-s 00000000 00:01 1234                       /dev/zero "
      "(deleted)\n"
      "7f0000200000-7f0000300000 rw-s 00100000 00:01 1234                       /dev/zero "
      "(deleted)\n"
      "7f0000400000-7f0000402000 rw-s 00000000 00:01 77                         /dev/zero "
      "(deleted)\n"
      "7f0000500000-7f0000600000 rw-s 00000000 00:2a 9                          /tmp/file\n"
      "garbage /dev/zero (deleted) rw-s \n"
      "7f rw-s /dev/zero (deleted)";
  add_shared_mappings(maps, found);
  add_shared_mappings(maps, found);
  EXPECT_EQ(found, (SharedMappings{{1234, 0x200000}, {77, 0x2000}}));
}

}  // namespace
}  // namespace capgate::sandbox
