#include "store/directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/key_material.h"
#include "store/vault.h"
#include "support/temp_directory.h"

namespace capgate::store {
namespace {

using Missing = StoreDirectory::Missing;

mode_t mode_of(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

class Directory : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return temp_.path("data/capgate"); }
  [[nodiscard]] StoreDirectory open() const {
    auto opened = StoreDirectory::open(path(), Missing::is_made);
    EXPECT_TRUE(opened && *opened);
    return **std::move(opened);
  }
  [[nodiscard]] static std::string text() {
    const auto key = secrets::Secret::make("0123456789abcdef0123456789abcdef");
    return *Vault::make({.kind = KeySource::Kind::file, .reference = "/k"}, *key)->text();
  }
  std::string refusal_of_read() {
    const auto read = open().read();
    return read ? "not refused" : read.error().message;
  }
  test::TempDirectory temp_;
};

TEST_F(Directory, IsMadeForItsUserAlone) {
  const auto none = StoreDirectory::open(path(), Missing::is_none);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  const StoreDirectory directory = open();
  EXPECT_EQ(mode_of(path()), 0700U);
  EXPECT_FALSE(*directory.read());
  ::umask(0);
  ASSERT_TRUE(directory.replace(text()));
  ::umask(022);
  EXPECT_EQ(mode_of(path() + "/secrets.json"), 0600U);
  EXPECT_TRUE(*directory.read());
}

TEST_F(Directory, IsRefusedWhenOthersCanUseIt) {
  (void)open();
  for (const mode_t mode : {0701U, 0710U, 0740U, 0720U, 0702U, 0755U}) {
    ::chmod(path().c_str(), mode);
    const auto opened = StoreDirectory::open(path(), Missing::is_made);
    ASSERT_FALSE(opened) << mode;
    EXPECT_EQ(opened.error().message, path() + ": others can use it");
  }
}

TEST_F(Directory, RefusesAFileThatOthersCanUse) {
  const StoreDirectory directory = open();
  ASSERT_TRUE(directory.replace(text()));
  const std::string file = path() + "/secrets.json";
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0601U}) {
    ::chmod(file.c_str(), mode);
    EXPECT_EQ(refusal_of_read(), file + ": others can use it");
  }
  ::chmod(file.c_str(), 0600);
  EXPECT_EQ(refusal_of_read(), "not refused");
}

TEST_F(Directory, RefusesWhatIsNoFileOfItsOwn) {
  (void)open();
  const std::string file = path() + "/secrets.json";
  const std::string elsewhere = temp_.file("elsewhere", text(), 0600);
  ASSERT_EQ(::symlink(elsewhere.c_str(), file.c_str()), 0);
  EXPECT_EQ(refusal_of_read(), file + ": Too many levels of symbolic links");
  ::unlink(file.c_str());
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(refusal_of_read(), file + ": it is something else than it must be");
}

TEST_F(Directory, SaysWhichFileIsDamaged) {
  (void)open();
  const std::string file = temp_.file("data/capgate/secrets.json", "{", 0600);
  EXPECT_TRUE(refusal_of_read().starts_with(file + ": the store is damaged: "))
      << refusal_of_read();
}

TEST_F(Directory, ReplacesTheFileAsAWhole) {
  const StoreDirectory directory = open();
  temp_.file("data/capgate/secrets.json.new", "left by a crash", 0644);
  ASSERT_TRUE(directory.replace(text()));
  struct stat before{};
  ASSERT_EQ(::stat((path() + "/secrets.json").c_str(), &before), 0);
  ASSERT_TRUE(directory.replace(text()));
  struct stat after{};
  ASSERT_EQ(::stat((path() + "/secrets.json").c_str(), &after), 0);
  EXPECT_NE(before.st_ino, after.st_ino);
  EXPECT_NE(::access((path() + "/secrets.json.new").c_str(), F_OK), 0);
}

TEST_F(Directory, IsLockedByOneAtATime) {
  const StoreDirectory directory = open();
  auto lock = directory.lock();
  ASSERT_TRUE(lock);
  const sys::Fd other(::open((path() + "/secrets.lock").c_str(), O_RDWR | O_CLOEXEC));
  struct flock whole{};
  whole.l_type = F_WRLCK;
  EXPECT_NE(::fcntl(other.get(), F_OFD_SETLK, &whole), 0);
  *lock = sys::Fd();
  EXPECT_EQ(::fcntl(other.get(), F_OFD_SETLK, &whole), 0);
}

TEST_F(Directory, KeyFilesAreLongEnoughAndOfTheirUserAlone) {
  const std::string enough(32, 'k');
  const auto read = read_key_file(temp_.file("good", enough, 0400));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->view(), enough);
  EXPECT_FALSE(read_key_file(temp_.file("short", enough.substr(1), 0600)));
  EXPECT_FALSE(read_key_file(temp_.file("long", std::string(65537, 'k'), 0600)));
  EXPECT_TRUE(read_key_file(temp_.file("longest", std::string(65536, 'k'), 0600)));
  EXPECT_FALSE(read_key_file(temp_.file("open", enough, 0640)));
  EXPECT_FALSE(read_key_file(temp_.path("none")));
  EXPECT_FALSE(read_key_file(temp_.directory("directory")));
  EXPECT_FALSE(read_key_file("/dev/zero"));
}

}  // namespace
}  // namespace capgate::store
