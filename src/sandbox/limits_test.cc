#include "sandbox/limits.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace capgate::sandbox
