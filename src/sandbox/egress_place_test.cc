#include "sandbox/egress_place.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "sandbox/egress_token.h"
#include "sandbox/launch.h"

namespace capgate::sandbox {
namespace {

namespace fs = std::filesystem;

class EgressPlaceTest : public testing::Test {
 protected:
  EgressPlaceTest() {
    std::string name = "/tmp/capgate-place-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
  }
  ~EgressPlaceTest() override { fs::remove_all(root); }

  [[nodiscard]] Where here() const { return {.path = root + "/d/egress.sock"}; }
  static mode_t mode_of(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  static std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const std::string& path, std::string_view text, mode_t mode) {
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  }

  std::string root;
};

TEST(EgressWhere, IsASocketOrAPortOfTheLoopback) {
  const auto socket = parse_where("unix:/srv/x/egress.sock", Reach::loopback);
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->kind, Where::Kind::unix_socket);
  EXPECT_EQ(socket->path, "/srv/x/egress.sock");
  const auto ipv4 = parse_where("tcp:127.0.0.2:3128", Reach::loopback);
  ASSERT_TRUE(ipv4);
  EXPECT_EQ(ipv4->address, "127.0.0.2");
  EXPECT_EQ(ipv4->port, 3128);
  const auto ipv6 = parse_where("tcp:[::1]:0", Reach::loopback);
  ASSERT_TRUE(ipv6);
  EXPECT_EQ(ipv6->address, "::1");
  for (const std::string_view wrong :
       {"", "unix", "unix:", "unix:/x/", "/x", "tcp:", "tcp:1", "tcp:0.0.0.0:1", "tcp:[::]:1",
        "tcp:[::2]:1", "tcp:localhost:1", "tcp:127.0.0.1:65536", "tcp:127.0.0.1:",
        "tcp:127.0.0.1:-1", "tcp:128.0.0.1:1", "tcp:[::ffff:127.0.0.1]:1", "udp:127.0.0.1:1"}) {
    const auto where = parse_where(wrong, Reach::loopback);
    EXPECT_FALSE(where) << wrong;
    if (!where) EXPECT_FALSE(where.error().help.empty());
  }
}

TEST_F(EgressPlaceTest, HoldsTheSocketAndTheForwarderWhileItLives) {
  {
    const auto place = open_place(here());
    ASSERT_TRUE(place) << place.error().message;
    EXPECT_EQ(place->name, "unix:" + root + "/d/egress.sock");
    EXPECT_EQ(mode_of(root + "/d"), 0700U);
    EXPECT_EQ(mode_of(root + "/d/egress.sock"), 0600U);
    EXPECT_EQ(mode_of(place->forwarder), 0555U);
    EXPECT_EQ(contents(place->forwarder), init_program());
    const auto second = open_place(here());
    ASSERT_FALSE(second);
    EXPECT_TRUE(second.error().message.contains("another capgate egress"));
  }
  EXPECT_FALSE(fs::exists(root + "/d"));
}

TEST_F(EgressPlaceTest, LeavesADirectoryThatWasThere) {
  fs::create_directory(root + "/d");
  Where where = here();
  where.with_forwarder = false;
  where.mode = 0666;
  {
    const auto place = open_place(where);
    ASSERT_TRUE(place) << place.error().message;
    EXPECT_EQ(mode_of(root + "/d/egress.sock"), 0666U);
    EXPECT_TRUE(place->forwarder.empty());
  }
  EXPECT_TRUE(fs::is_empty(root + "/d"));
}

TEST_F(EgressPlaceTest, RefusesWhatOthersCanWriteAndWhatIsNotItsOwn) {
  fs::create_directory(root + "/d");
  EXPECT_EQ(::chmod((root + "/d").c_str(), 0770), 0);
  EXPECT_FALSE(open_place(here()));
  EXPECT_EQ(::chmod((root + "/d").c_str(), 0700), 0);
  write(root + "/d/egress.sock", "kept", 0600);
  EXPECT_FALSE(open_place(here()));
  EXPECT_EQ(contents(root + "/d/egress.sock"), "kept");
  fs::create_directory_symlink(root + "/d", root + "/link");
  EXPECT_FALSE(open_place({.path = root + "/link/egress.sock"}));
  EXPECT_FALSE(open_place({.path = root + "/absent/d/egress.sock"}));
  EXPECT_FALSE(open_place({.path = root + "/e/" + std::string(100, 'x')}));
  EXPECT_FALSE(fs::exists(root + "/e")) << "a refusal leaves nothing behind";
}

TEST_F(EgressPlaceTest, TokensAreMadeOrReadFromAFileOfOnesOwn) {
  const std::string path = root + "/token";
  const auto made = open_token(path);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->size(), 64U);
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(open_token(path), *made);
  EXPECT_NE(open_token(root + "/other"), *made);
  EXPECT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_FALSE(open_token(path));
  const std::pair<std::string, bool> cases[] = {
      {std::string(16, 'a'), true},    {std::string(255, 'a') + "\n", true},
      {std::string(15, 'a'), false},   {std::string(256, 'a'), false},
      {std::string(4096, 'a'), false}, {"with a space in it", false},
      {"with:a:colon:in:it", false},   {"", false}};
  for (const auto& [text, is_good] : cases) {
    write(path, text, 0600);
    const auto read = open_token(path);
    EXPECT_EQ(read.has_value(), is_good) << text.size();
    if (!read && !text.empty()) EXPECT_FALSE(read.error().message.contains(text));
  }
  EXPECT_FALSE(open_token(root));
  fs::create_symlink(path, root + "/link");
  EXPECT_FALSE(open_token(root + "/link"));
}

}  // namespace
}  // namespace capgate::sandbox
