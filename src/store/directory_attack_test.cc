// A store that somebody else could have put there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "store/directory.h"
#include "store/key_material.h"
#include "support/requirement.h"
#include "support/temp_directory.h"

namespace capgate::store {
namespace {

using Missing = StoreDirectory::Missing;
constexpr uid_t somebody = 12345;

class DirectoryAttack : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return temp_.path("data/capgate"); }
  [[nodiscard]] StoreDirectory open() const {
    auto opened = StoreDirectory::open(path(), Missing::is_made);
    EXPECT_TRUE(opened && *opened);
    return **std::move(opened);
  }
  [[nodiscard]] static std::string refusal_of_lock(const StoreDirectory& directory) {
    const auto lock = directory.lock();
    return lock ? "not refused" : lock.error().message;
  }
  static void give_away(const std::string& path) {
    ASSERT_EQ(::lchown(path.c_str(), somebody, somebody), 0) << path;
  }

  test::TempDirectory temp_;
};

TEST_F(DirectoryAttack, ADirectoryOfAnotherUserIsRefused) {
  CAPGATE_REQUIRE(::geteuid() == 0, "only root can give a directory away");
  (void)open();
  give_away(path());
  const auto opened = StoreDirectory::open(path(), Missing::is_made);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, path() + ": it belongs to another user");
}

TEST_F(DirectoryAttack, AFileOfAnotherUserIsRefused) {
  CAPGATE_REQUIRE(::geteuid() == 0, "only root can give a file away");
  const StoreDirectory directory = open();
  const std::string file = temp_.file("data/capgate/secrets.json", "{}", 0600);
  give_away(file);
  const auto read = directory.read();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, file + ": it belongs to another user");
}

TEST_F(DirectoryAttack, AKeyFileOfAnotherUserIsRefused) {
  CAPGATE_REQUIRE(::geteuid() == 0, "only root can give a file away");
  const std::string file = temp_.file("key", std::string(32, 'k'), 0600);
  ASSERT_TRUE(read_key_file(file));
  give_away(file);
  const auto read = read_key_file(file);
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().message.contains("belongs to another user")) << read.error().message;
}

// Opening it would create or lock a file elsewhere.
TEST_F(DirectoryAttack, ALockThatIsALinkIsRefused) {
  const StoreDirectory directory = open();
  const std::string elsewhere = temp_.path("elsewhere");
  ASSERT_EQ(::symlink(elsewhere.c_str(), (path() + "/secrets.lock").c_str()), 0);
  EXPECT_EQ(refusal_of_lock(directory),
            path() + "/secrets.lock: Too many levels of symbolic links");
  EXPECT_NE(::access(elsewhere.c_str(), F_OK), 0);
}

// Others could keep it locked for ever.
TEST_F(DirectoryAttack, ALockThatOthersCanUseIsRefused) {
  const StoreDirectory directory = open();
  const std::string lock = temp_.file("data/capgate/secrets.lock", "", 0666);
  EXPECT_EQ(refusal_of_lock(directory), lock + ": others can use it");
  ASSERT_EQ(::chmod(lock.c_str(), 0600), 0);
  EXPECT_EQ(refusal_of_lock(directory), "not refused");
}

// One variable of the environment, as it was before when this ends.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  Variable(Variable&&) = delete;
  Variable& operator=(Variable&&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(StorePlace, IsNotRelativeToTheCurrentDirectory) {
  const Variable home("HOME", "/home/x");
  {
    const Variable data("XDG_DATA_HOME", "/data");
    EXPECT_EQ(store_directory().value(), "/data/capgate");
  }
  {
    const Variable data("XDG_DATA_HOME", "data");
    EXPECT_EQ(store_directory().value(), "/home/x/.local/share/capgate");
  }
  const Variable data("XDG_DATA_HOME", "data");
  const Variable relative("HOME", "x");
  EXPECT_FALSE(store_directory());
}

}  // namespace
}  // namespace capgate::store
