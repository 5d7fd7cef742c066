#include "sandbox/mask_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <filesystem>

#include "support/temp_directory.h"

namespace capgate::sandbox {
namespace {

using test::TempDirectory;

bool has_event(const MaskWatch& watch) {
  pollfd poll{watch.fd(), POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;  // events are there when the call that caused them returns
}

// A grant with a covered file two directories below.
class Masks : public testing::Test {
 protected:
  [[nodiscard]] Masked seen(const std::string& path) const {
    return {.path = path, .root = place.path(), .identity = *identify(path)};
  }

  TempDirectory place;
  std::string file = place.file("outer/inner/token", "secret");
  std::string inner = place.path("outer/inner");
  std::string outer = place.path("outer");
  std::vector<Masked> masked = {seen(file)};
  std::vector<Masked> ways = {seen(inner), seen(outer)};
  MaskWatch watch{masked, ways};
};

TEST_F(Masks, NothingHappenedYet) {
  EXPECT_FALSE(has_event(watch));
  EXPECT_EQ(watch.replaced(), "");
}

TEST_F(Masks, AFileBesideIsNotTheirConcern) {
  place.file("outer/inner/beside", "x");
  EXPECT_EQ(watch.replaced(), "");
}

TEST_F(Masks, AFileRenamedOverTheMaskIsNoticed) {
  const TempDirectory elsewhere;  // where nothing is watched
  std::filesystem::rename(elsewhere.file("new", "another"), file);
  EXPECT_TRUE(has_event(watch));
  EXPECT_EQ(watch.replaced(), file);
}

TEST_F(Masks, AFileMadeInItsPlaceIsNoticed) {
  std::filesystem::rename(file, place.path("away"));
  EXPECT_EQ(watch.replaced(), "");  // there is nothing to be seen, for now
  EXPECT_FALSE(has_event(watch));
  place.file("outer/inner/token", "another");
  EXPECT_TRUE(has_event(watch));
  EXPECT_EQ(watch.replaced(), file);
}

TEST_F(Masks, ADirectoryInItsPlaceIsNoticed) {
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_TRUE(has_event(watch));
  EXPECT_EQ(watch.replaced(), file);
}

// The cover goes with the directory, and whatever comes under its name is not watched.
TEST_F(Masks, ADirectoryOnTheWayThatVanishedIsNoticed) {
  std::filesystem::rename(inner, place.path("away"));
  EXPECT_TRUE(has_event(watch));
  EXPECT_EQ(watch.replaced(), inner);
}

TEST_F(Masks, TheOuterDirectoryThatVanishedIsNoticed) {
  std::filesystem::rename(outer, place.path("away"));
  EXPECT_TRUE(has_event(watch));
  EXPECT_NE(watch.replaced(), "");
}

TEST_F(Masks, ADirectoryOnTheWayThatWasReplacedIsNoticed) {
  std::filesystem::rename(inner, place.path("away"));
  std::filesystem::create_directory(inner);
  EXPECT_TRUE(has_event(watch));
  EXPECT_EQ(watch.replaced(), inner);
}

TEST_F(Masks, ADirectoryOnTheWayThatIsNowALinkIsNoticed) {
  std::filesystem::rename(inner, place.path("away"));
  std::filesystem::create_directory_symlink(place.path("away"), inner);
  EXPECT_EQ(watch.replaced(), inner);
}

// The grant's own directory moved: its entries are reached by another name.
TEST_F(Masks, TheGrantItselfThatVanishedIsNoticed) {
  const std::string moved = place.path() + "-moved";
  std::filesystem::rename(place.path(), moved);
  EXPECT_TRUE(has_event(watch));
  EXPECT_NE(watch.replaced(), "");
  std::filesystem::rename(moved, place.path());
}

// Neither there nor gone: that is no state in which the cover is known to hold.
TEST(MasksUnknown, AnEntryThatCannotBeLookedAtCountsAsReplaced) {
  const TempDirectory place;
  const std::string file = place.file("grant/token", "secret");
  const std::vector<Masked> masked = {
      {.path = file, .root = place.path("grant"), .identity = *identify(file)}};
  const std::vector<Masked> none;
  MaskWatch watch(masked, none);
  std::filesystem::rename(place.path("grant"), place.path("away"));
  place.file("grant", "no directory");
  EXPECT_EQ(watch.replaced(), file);
}

TEST(MasksOfNothing, NothingIsWatched) {
  const std::vector<Masked> none;
  MaskWatch watch(none, none);
  EXPECT_LT(watch.fd(), 0);
  EXPECT_EQ(watch.replaced(), "");
}

// A change could no longer be noticed: the sandbox must not run.
TEST(MasksUnwatched, ADirectoryThatCannotBeWatchedCountsAsReplaced) {
  const TempDirectory place;
  const std::string file = place.file("dir/token", "secret");
  const std::vector<Masked> masked = {
      {.path = file, .root = place.path(), .identity = *identify(file)}};
  const std::vector<Masked> none;
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit no_descriptors{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_NOFILE, &no_descriptors);
    MaskWatch watch(masked, none);
    ::_exit(watch.replaced().empty() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace capgate::sandbox
