// Installed packages that somebody else could have changed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clients/store.h"
#include "clients/tree.h"
#include "support/requirement.h"
#include "support/temp_directory.h"

namespace capgate::clients {
namespace {

class PackageAttack : public testing::Test {
 protected:
  PackageAttack() {
    const std::string place = std::filesystem::path(store_.directory_of(locked_))
                                  .lexically_relative(directory_.path())
                                  .string();
    directory_.file(place + "/a.js", "text");
    EXPECT_EQ(::chmod(tree().c_str(), 0700), 0);
    const std::string before = tree();
    locked_.tree = hash_tree(before).value();
    std::filesystem::rename(before, tree());
  }
  [[nodiscard]] std::string tree() const { return store_.directory_of(locked_); }
  [[nodiscard]] std::string problem() const {
    const auto checked = check_installed(store_, locked_);
    return checked ? "none" : checked.error().message;
  }

  const test::TempDirectory directory_;
  const Store store_{.base = directory_.path("data")};
  LockedPackage locked_{
      .package = {.registry = Package::Registry::npm, .name = "tool", .range = ""},
      .version = "1.2.3",
      .integrity = "sha512-abc",
      .tree = "sha256:" + std::string(64, 'a'),
      .runtime = "/usr/bin/node"};
};

TEST_F(PackageAttack, AnUnchangedTreeIsTaken) { EXPECT_EQ(problem(), "none"); }

TEST_F(PackageAttack, AFileOfTheSameLengthIsAChange) {
  directory_.file(
      std::filesystem::path(tree()).lexically_relative(directory_.path()).string() + "/a.js",
      "evil");
  EXPECT_TRUE(problem().contains("was changed after it was installed")) << problem();
}

TEST_F(PackageAttack, ATreeThatItsGroupCanWriteIsRefused) {
  ASSERT_EQ(::chmod(tree().c_str(), 0770), 0);
  EXPECT_TRUE(problem().contains("you alone can change")) << problem();
}

TEST_F(PackageAttack, ATreeOfAnotherUserIsRefused) {
  CAPGATE_REQUIRE(::geteuid() == 0, "only root can give a directory away");
  ASSERT_EQ(::chown(tree().c_str(), 12345, 12345), 0);
  EXPECT_TRUE(problem().contains("you alone can change")) << problem();
}

TEST_F(PackageAttack, AProgramThatWouldRunAsItsGroupIsRefused) {
  const std::string file = tree() + "/a.js";
  for (const mode_t mode : {04755U, 02755U}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    const auto settled = settle_tree(tree());
    ASSERT_FALSE(settled) << mode;
    EXPECT_TRUE(settled.error().message.contains("would run as its owner"));
  }
}

}  // namespace
}  // namespace capgate::clients
