#include "secrets/secret.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "support/mapping_flags.h"

namespace capgate::secrets {
namespace {

using support::flags_of;

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
