#include "sandbox/policy_place.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/temp_directory.h"

namespace capgate::sandbox {
namespace {

using Kind = lower::PlanMount::Kind;

class PolicyPlace : public testing::Test {
 protected:
  void SetUp() override {
    directory_.directory("work/sub");
    directory_.directory("safe");
  }

  void grant(const std::string& name, std::string rights, Kind kind = Kind::bind) {
    plan_.mounts.push_back({.kind = kind,
                            .target = directory_.path(name),
                            .detail = std::move(rights),
                            .origins = kind == Kind::mask ? nullptr : &origins_});
  }

  // What the refusal names as writable; empty: accepted.
  std::string refused(const std::string& file) {
    const auto checked = check_policy_places({file}, plan_, launcher_);
    if (checked) return "";
    EXPECT_FALSE(checked.error().help.empty());
    EXPECT_EQ(checked.error().exit_code, 125);
    return checked.error().message;
  }

  test::TempDirectory directory_;
  core::Origins origins_ = {0};
  lower::Plan plan_;
  Launcher launcher_{.caller = {.directory = directory_.path("work")}, .environment = {}};
};

TEST_F(PolicyPlace, AFileThatTheServerCanWriteIsRefused) {
  const std::string file = directory_.file("work/sub/m.json", "{}");
  EXPECT_EQ(refused(file), "");
  for (const char* rights : {"write", "create", "delete"}) {
    plan_.mounts.clear();
    grant("work", rights);
    EXPECT_TRUE(refused(file).contains(directory_.path("work") + " is granted for writing"))
        << rights;
  }
  plan_.mounts.clear();
  grant("work", "read");
  EXPECT_EQ(refused(file), "");
}

TEST_F(PolicyPlace, AFileOutsideIsAccepted) {
  grant("work", "write");
  EXPECT_EQ(refused(directory_.file("safe/m.json", "{}")), "");
  EXPECT_EQ(refused(directory_.file("work2/m.json", "{}")), "");
}

TEST_F(PolicyPlace, ThatVeryFileIsRefused) {
  const std::string file = directory_.file("safe/m.json", "{}");
  grant("safe/m.json", "write");
  EXPECT_NE(refused(file), "");
}

TEST_F(PolicyPlace, ARelativePathStartsAtTheCaller) {
  directory_.file("work/m.json", "{}");
  directory_.file("safe/m.json", "{}");
  grant("work", "write");
  EXPECT_NE(refused("m.json"), "");
  EXPECT_NE(refused("./sub/../m.json"), "");
  EXPECT_EQ(refused("../safe/m.json"), "");
}

TEST_F(PolicyPlace, LinksOnTheWayCount) {
  directory_.file("work/m.json", "{}");
  directory_.file("safe/m.json", "{}");
  grant("work", "write");
  // From outside to the inside, by a file and by a directory.
  EXPECT_NE(refused(directory_.link("safe/file", directory_.path("work/m.json"))), "");
  directory_.link("safe/way", "../work");
  EXPECT_NE(refused(directory_.path("safe/way/m.json")), "");
  // From the inside out: the server could turn the link.
  EXPECT_NE(refused(directory_.link("work/out", directory_.path("safe/m.json"))), "");
  directory_.link("work/dir", directory_.path("safe"));
  EXPECT_NE(refused(directory_.path("work/dir/m.json")), "");
  // Round and round.
  directory_.link("safe/loop", "loop");
  EXPECT_EQ(refused(directory_.path("safe/loop")), "");
}

TEST_F(PolicyPlace, WhatIsNotThereYetCouldBeMade) {
  grant("work", "write");
  EXPECT_NE(refused(directory_.path("work/none/at/all.yaml")), "");
  EXPECT_EQ(refused(directory_.path("safe/none/at/all.yaml")), "");
}

TEST_F(PolicyPlace, WhatStaysHiddenIsNotWritable) {
  const std::string file = directory_.file("work/.config/capgate/capgate.yaml", "");
  grant("work", "write");
  EXPECT_NE(refused(file), "");
  grant("work/.config/capgate", "", Kind::mask);
  EXPECT_EQ(refused(file), "");
  grant("work/.config/capgate/capgate.yaml", "write");
  EXPECT_NE(refused(file), "");
}

TEST_F(PolicyPlace, GrantedEntriesCount) {
  directory_.file("work/a.json", "{}");
  directory_.file("work/b.txt", "");
  grant("work/*.json", "write", Kind::entries);
  EXPECT_NE(refused(directory_.path("work/a.json")), "");
  EXPECT_EQ(refused(directory_.path("work/b.txt")), "");
}

TEST_F(PolicyPlace, TheStateDirectoryIsWritable) {
  launcher_.state = directory_.directory("state/x/home");
  EXPECT_NE(refused(directory_.path("state/x/home/m.json")), "");
  EXPECT_EQ(refused(directory_.path("state/approved/y.json")), "");
}

TEST_F(PolicyPlace, AnotherNameOfTheSameDirectoryCounts) {
  directory_.file("work/m.json", "{}");
  grant("work", "write");
  // A second name without a link, as a bind mount gives it.
  EXPECT_NE(refused("/proc/self/root" + directory_.path("work/m.json")), "");
}

}  // namespace
}  // namespace capgate::sandbox
