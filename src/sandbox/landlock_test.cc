#include "sandbox/landlock.h"

#include <gtest/gtest.h>

#include <bit>

namespace capgate::sandbox {
namespace {

// As include/uapi/linux/landlock.h numbers them.
constexpr std::uint64_t execute = 1U << 0U;
constexpr std::uint64_t write_file = 1U << 1U;
constexpr std::uint64_t read_file = 1U << 2U;
constexpr std::uint64_t make_sym = 1U << 12U;
constexpr std::uint64_t refer = 1U << 13U;
constexpr std::uint64_t truncate = 1U << 14U;
constexpr std::uint64_t ioctl_dev = 1U << 15U;

TEST(Landlock, EachAbiHandlesItsRights) {
  EXPECT_EQ(landlock_handled(0), 0U);
  EXPECT_EQ(landlock_handled(1), 0x1fffU);
  EXPECT_EQ(landlock_handled(2), 0x1fffU | refer);
  EXPECT_EQ(landlock_handled(3), 0x1fffU | refer | truncate);
  EXPECT_EQ(landlock_handled(4), landlock_handled(3));
  EXPECT_EQ(landlock_handled(5), landlock_handled(4) | ioctl_dev);
  EXPECT_EQ(landlock_handled(6), landlock_handled(5));
  EXPECT_EQ(landlock_handled(99), 0xffffU);
}

TEST(Landlock, ScopesCameWithAbiSix) {
  EXPECT_EQ(landlock_scoped(5), 0U);
  EXPECT_EQ(landlock_scoped(6), 3U);
  EXPECT_EQ(landlock_scoped(99), 3U);
}

TEST(Landlock, TheAttributeIsAsLongAsTheAbiKnows) {
  for (const int abi : {1, 2, 3}) EXPECT_EQ(landlock_attribute_size(abi), 8U) << abi;
  for (const int abi : {4, 5}) EXPECT_EQ(landlock_attribute_size(abi), 16U) << abi;
  for (const int abi : {6, 7, 99}) EXPECT_EQ(landlock_attribute_size(abi), 24U) << abi;
}

TEST(Landlock, NamesBecomeTheKernelsBits) {
  EXPECT_EQ(landlock_access({"execute"}, 1), execute);
  EXPECT_EQ(landlock_access({"write_file", "read_file"}, 1), write_file | read_file);
  EXPECT_EQ(landlock_access({"make_sym"}, 1), make_sym);
  EXPECT_EQ(landlock_access({"refer", "truncate", "ioctl_dev"}, 6), refer | truncate | ioctl_dev);
  EXPECT_EQ(landlock_access({}, 6), 0U);
}

// A rule with a right that the ruleset does not handle is an error of the kernel's.
TEST(Landlock, ARightThatTheAbiDoesNotHaveIsLeftOut) {
  EXPECT_EQ(landlock_access({"read_file", "refer"}, 1), read_file);
  EXPECT_EQ(landlock_access({"write_file", "truncate"}, 2), write_file);
  EXPECT_EQ(landlock_access({"ioctl_dev"}, 4), 0U);
  const std::vector<std::string_view> newest = {"execute", "refer", "truncate", "ioctl_dev"};
  for (int abi = 0; abi < 10; ++abi) {
    EXPECT_EQ(landlock_access(newest, abi) & ~landlock_handled(abi), 0U) << abi;
  }
}

TEST(Landlock, AnUnknownNameGivesNothing) {
  EXPECT_EQ(landlock_access({"fly", "read_file"}, 6), read_file);
  EXPECT_EQ(landlock_access({""}, 6), 0U);
}

TEST(Landlock, TheRightsOfAFileAreThoseWithoutADirectory) {
  const std::vector<std::string_view> of_a_file = {"execute", "write_file", "read_file", "truncate",
                                                   "ioctl_dev"};
  EXPECT_EQ(landlock_access(of_a_file, 6), landlock_file_rights);
  EXPECT_EQ(std::popcount(landlock_file_rights), 5);
}

}  // namespace
}  // namespace capgate::sandbox
