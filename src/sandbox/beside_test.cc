#include "sandbox/beside.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/requirement.h"

namespace capgate::sandbox {
namespace {

namespace fs = std::filesystem;

// A file in the directory of this test program, which stands for capgate.
class Beside : public testing::Test {
 protected:
  Beside() {
    std::ofstream(path) << "#!/bin/true\n";
    set_mode(0755);
  }
  ~Beside() override { fs::remove_all(path); }

  void set_mode(mode_t mode) const { ASSERT_EQ(::chmod(path.c_str(), mode), 0); }
  // Empty if the program is taken.
  [[nodiscard]] std::string refusal() const {
    const auto found = find_beside({.name = name, .needed_by = "the test needs"});
    return found ? "" : found.error().message;
  }

  std::string name = "capgate-test-beside-" + std::to_string(::getpid());
  std::string path = fs::read_symlink("/proc/self/exe").parent_path() / name;
};

TEST_F(Beside, IsFound) { EXPECT_EQ(refusal(), ""); }

TEST_F(Beside, IsRefusedWhereOthersCanWriteIt) {
  for (const mode_t mode : {mode_t{0775}, mode_t{0757}, mode_t{0777}}) {
    set_mode(mode);
    EXPECT_NE(refusal().find("others than capgate's owner can write"), std::string::npos) << mode;
  }
}

TEST_F(Beside, IsRefusedWhereItIsSomebodyElses) {
  CAPGATE_REQUIRE(::geteuid() == 0, "only root can give a file away");
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_NE(refusal().find("others than capgate's owner can write"), std::string::npos);
}

TEST_F(Beside, IsNoLink) {
  fs::remove(path);
  fs::create_symlink("/bin/true", path);
  EXPECT_NE(refusal().find("no regular file"), std::string::npos) << refusal();
}

TEST_F(Beside, IsNoDirectory) {
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_NE(refusal().find("no regular file"), std::string::npos) << refusal();
}

TEST_F(Beside, IsRefusedWhereItIsMissing) {
  fs::remove(path);
  EXPECT_NE(refusal().find("No such file"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace capgate::sandbox
