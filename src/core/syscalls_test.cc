#include "core/syscalls.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <map>

// Tests of this folder do not link libseccomp: src/lower/seccomp_oracle_test.cc compares the whole
// table with it, for both architectures. Here: the build machine's own header, and the lookups.
namespace capgate::core {
namespace {

TEST(SyscallTable, KnowsTheNumbersOfBothArchitectures) {
  constexpr SyscallId openat = syscall("openat");
  EXPECT_EQ(syscall_info(openat).x86_64, 257);
  EXPECT_EQ(syscall_info(openat).aarch64, 56);
  EXPECT_EQ(syscall_info(syscall("open")).aarch64, absent);
  EXPECT_EQ(syscall_info(syscall("mseal")).x86_64, 462);
  EXPECT_EQ(syscall_info(syscall("file_setattr")).aarch64, 469);
}

#ifdef __x86_64__
TEST(SyscallTable, AgreesWithTheKernelHeaderOfTheBuildMachine) {
  EXPECT_EQ(syscall_info(syscall("read")).x86_64, SYS_read);
  EXPECT_EQ(syscall_info(syscall("rseq")).x86_64, SYS_rseq);
  EXPECT_EQ(syscall_info(syscall("clone3")).x86_64, SYS_clone3);
  EXPECT_EQ(syscall_info(syscall("landlock_restrict_self")).x86_64, SYS_landlock_restrict_self);
}
#endif

TEST(SyscallTable, FindsEveryNameThatItHoldsAndNoOther) {
  for (const Syscall& entry : syscalls()) {
    const auto id = find_syscall(entry.name);
    ASSERT_TRUE(id) << entry.name;
    EXPECT_EQ(syscall_info(*id).name, entry.name);
  }
  EXPECT_FALSE(find_syscall(""));
  EXPECT_FALSE(find_syscall("zzz"));
  EXPECT_FALSE(find_syscall("openat3"));
}

TEST(SyscallTable, GivesEachNumberToOneNameOnly) {
  std::map<int, std::string_view> x86_64;
  std::map<int, std::string_view> aarch64;
  for (const Syscall& entry : syscalls()) {
    EXPECT_TRUE(entry.x86_64 != absent || entry.aarch64 != absent) << entry.name;
    if (entry.x86_64 != absent) {
      EXPECT_TRUE(x86_64.emplace(entry.x86_64, entry.name).second) << entry.name;
    }
    if (entry.aarch64 != absent) {
      EXPECT_TRUE(aarch64.emplace(entry.aarch64, entry.name).second) << entry.name;
    }
  }
}

TEST(SyscallTable, MakesAListInTheOrderWritten) {
  constexpr auto list = syscall_list({"write", "read"});
  EXPECT_EQ(list[0], syscall("write"));
  EXPECT_EQ(list[1], syscall("read"));
}

}  // namespace
}  // namespace capgate::core
