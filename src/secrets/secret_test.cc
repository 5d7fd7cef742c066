#include "secrets/secret.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "sys/file.h"

namespace capgate::secrets {
namespace {

// The flags of the mapping that holds `address`, from /proc/self/smaps.
std::string flags_of(const void* address) {
  const auto maps = sys::read_file("/proc/self/smaps", std::size_t{64} << 20U);
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::size_t at = 0;
  bool is_inside = false;
  while (at < maps->size()) {
    const std::size_t end = maps->find('\n', at);
    const std::string line = maps->substr(at, end - at);
    at = end + 1;
    unsigned long from = 0;
    unsigned long to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      is_inside = from <= wanted && wanted < to;
    }
    if (is_inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(Secret, LiesInMemoryThatIsLockedAndInNoDumpAndInNoChild) {
  const auto secret = Secret::make("a-token-of-mine");
  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->view(), "a-token-of-mine");
  const std::string flags = flags_of(secret->view().data());
  EXPECT_TRUE(flags.contains(" lo ")) << flags;
  EXPECT_TRUE(flags.contains(" dd ")) << flags;
  EXPECT_TRUE(flags.contains(" wf ")) << flags;
}

TEST(Secret, AChildSeesZeros) {
  const auto secret = Secret::make("a-token-of-mine");
  ASSERT_TRUE(secret);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(secret->view().contains('a') ? 1 : 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Secret, MovingLeavesNothing) {
  auto first = Secret::make("value");
  ASSERT_TRUE(first);
  const Secret second = *std::move(first);
  EXPECT_TRUE(first->is_empty());
  EXPECT_EQ(second.view(), "value");
}

TEST(Secret, ShrinkingWipesTheRest) {
  auto secret = Secret::make("value-and-rest");
  ASSERT_TRUE(secret);
  const char* const rest = secret->view().data() + 5;
  secret->shrink(5);
  EXPECT_EQ(secret->view(), "value");
  EXPECT_EQ(*rest, '\0');
  secret->shrink(50);
  EXPECT_EQ(secret->view(), "value");
}

TEST(Wipe, LeavesAnEmptyText) {
  std::string text(100, 'x');
  const char* const bytes = text.data();
  wipe(text);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(bytes[0], '\0');
}

}  // namespace
}  // namespace capgate::secrets
