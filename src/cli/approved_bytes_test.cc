// The files of an approved package, where a mark saves reading them again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "cli/approved.h"
#include "cli/caller.h"
#include "cli/project.h"
#include "clients/approvals.h"
#include "clients/store.h"
#include "clients/tree.h"
#include "support/temp_directory.h"
#include "sys/fd.h"

namespace capgate::cli {
namespace {

class ApprovedBytes : public testing::Test {
 protected:
  ApprovedBytes() {
    ::setenv("XDG_DATA_HOME", directory_.path("data").c_str(), 1);
    ::setenv("XDG_STATE_HOME", directory_.path("state").c_str(), 1);
    directory_.file(below(tree()) + "/a.js", "good");
    EXPECT_EQ(::chmod(tree().c_str(), 0700), 0);
    const std::string before = tree();
    locked_.tree = clients::hash_tree(before).value();
    std::filesystem::rename(before, tree());
  }
  ~ApprovedBytes() override {
    ::unsetenv("XDG_DATA_HOME");
    ::unsetenv("XDG_STATE_HOME");
  }
  [[nodiscard]] std::string tree() const {
    return clients::Store{.base = data_base()}.directory_of(locked_);
  }
  [[nodiscard]] std::string below(const std::string& path) const {
    return std::filesystem::path(path).lexically_relative(directory_.path()).string();
  }
  [[nodiscard]] bool has_mark() const {
    return !clients::Approvals(approvals_directory()).mark_of(tree()).empty();
  }
  // A tree gets a mark when its last change is older than the coarsest clock of a file system.
  void wait_until_settled() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (clients::mark_tree(tree()).value().empty()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  // As many bytes as before, and the time of the last change as it was.
  void change_secretly() const {
    const std::string file = tree() + "/a.js";
    struct stat before{};
    ASSERT_EQ(::stat(file.c_str(), &before), 0);
    const sys::Fd opened(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::pwrite(opened.get(), "evil", 4, 0), 4);
    const timespec times[] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::futimens(opened.get(), times), 0);
  }

  const test::TempDirectory directory_;
  clients::LockedPackage locked_{
      .package = {.registry = clients::Package::Registry::npm, .name = "tool", .range = ""},
      .version = "1.2.3",
      .integrity = "sha512-abc",
      .tree = "sha256:" + std::string(64, 'a'),
      .runtime = "/usr/bin/node"};
};

TEST_F(ApprovedBytes, AMarkVouchesForTheFilesThatItWasMadeFrom) {
  wait_until_settled();
  ASSERT_TRUE(check_package_bytes(locked_));
  ASSERT_TRUE(has_mark());
  EXPECT_TRUE(check_package_bytes(locked_));
  change_secretly();
  EXPECT_FALSE(check_package_bytes(locked_)) << "just changed";
  wait_until_settled();
  EXPECT_FALSE(check_package_bytes(locked_)) << "changed a while ago";
}

TEST_F(ApprovedBytes, FilesThatDoNotFitGetNoMark) {
  change_secretly();
  wait_until_settled();
  EXPECT_FALSE(check_package_bytes(locked_));
  EXPECT_FALSE(has_mark());
}

}  // namespace
}  // namespace capgate::cli
