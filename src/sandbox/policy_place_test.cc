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
    const auto checked = check_policy_places({{.path = file}}, plan_, launcher_);
    if (checked) return "";
    EXPECT_FALSE(checked.error().help.empty());
    EXPECT_EQ(checked.error().exit_code, 125);
    help_ = checked.error().help;
    return checked.error().message;
  }

  test::TempDirectory directory_;
  core::Origins origins_ = {0};
  std::string help_;
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
  // Those that are there: no other is ever made.
  EXPECT_EQ(refused(directory_.path("work/none.json")), "");
}

TEST_F(PolicyPlace, AGrantedFileThatIsMadeAtTheStartCounts) {
  grant("safe/new.yaml", "write");
  EXPECT_NE(refused(directory_.path("safe/new.yaml")), "");
  EXPECT_NE(refused(directory_.path("safe/new.yaml/deeper")), "");
  EXPECT_EQ(refused(directory_.path("safe/other.yaml")), "");
  EXPECT_EQ(refused(directory_.path("work/new.yaml")), "");
}

TEST_F(PolicyPlace, ADirectoryStandsForWhatIsInIt) {
  directory_.file("safe/servers/x.yaml", "");
  const std::string place = directory_.path("safe");
  for (const char* inside : {"safe/servers", "safe/servers/x.yaml", "safe/new.yaml"}) {
    plan_.mounts.clear();
    grant(inside, "write");
    EXPECT_TRUE(refused(place).contains(directory_.path(inside))) << inside;
    EXPECT_EQ(refused(directory_.path("safe/capgate.lock")), "") << inside;
  }
  plan_.mounts.clear();
  grant("safe/servers/*.yaml", "write", Kind::entries);
  EXPECT_NE(refused(place), "");
  // By another name of either.
  directory_.link("name", place);
  EXPECT_NE(refused(directory_.path("name")), "");
  plan_.mounts.clear();
  grant("name/servers", "write");
  EXPECT_NE(refused(place), "");
  EXPECT_EQ(refused(directory_.path("work")), "");
}

TEST_F(PolicyPlace, TheHomeOfAServerWithAnUnluckyNameLiesInNoPlace) {
  launcher_.state = directory_.directory("state/approved/home");
  EXPECT_EQ(refused(directory_.path("state/approved")), "");
  EXPECT_NE(refused(directory_.path("state/approved/home/x")), "");
}

TEST_F(PolicyPlace, TheRefusalNamesTheGrantAndWhatToDo) {
  const std::string file = directory_.file("work/m.json", "{}");
  plan_.mounts.push_back({.kind = Kind::bind,
                          .target = directory_.path("work"),
                          .detail = "create",
                          .directory = true,
                          .origins = &origins_});
  EXPECT_EQ(refused(file),
            file + " decides what the server may do, and the server could write it: " +
                directory_.path("work") +
                " is granted for writing by fs:create:" + directory_.path("work") + "/**");
  EXPECT_EQ(help_, "keep it outside of what the server can write, or grant less");
}

TEST_F(PolicyPlace, WhatWouldBeHiddenIsToBeMade) {
  grant("work", "write");
  grant("work/capgate", "directory", Kind::mask);
  grant("work/state", "directory", Kind::mask);
  EXPECT_NE(refused(directory_.path("work/capgate/servers")), "");
  EXPECT_TRUE(help_.ends_with(": mkdir -p " + directory_.path("work/capgate"))) << help_;
  EXPECT_NE(refused(directory_.path("work/capgate2")), "");
  EXPECT_FALSE(help_.contains("mkdir")) << help_;
  const std::vector<sandbox::PolicyPlace> both = {{.path = directory_.path("work/capgate/x")},
                                                  {.path = directory_.path("work/capgate/y")},
                                                  {.path = directory_.path("work/state")}};
  const auto checked = check_policy_places(both, plan_, launcher_);
  ASSERT_FALSE(checked.has_value());
  EXPECT_TRUE(checked.error().help.ends_with(directory_.path("work/capgate") + " " +
                                             directory_.path("work/state")));
  directory_.directory("work/capgate");
  directory_.directory("work/state");
  EXPECT_TRUE(check_policy_places(both, plan_, launcher_).has_value());
}

TEST_F(PolicyPlace, WhoCanWriteNothingIsNotAsked) {
  EXPECT_FALSE(grants_writing(plan_));
  grant("work", "read");
  grant("work/.ssh", "directory", Kind::mask);
  EXPECT_FALSE(grants_writing(plan_));
  grant("work/sub", "delete");
  EXPECT_TRUE(grants_writing(plan_));
}

TEST_F(PolicyPlace, TheStateDirectoryIsWritable) {
  launcher_.state = directory_.directory("state/x/home");
  EXPECT_NE(refused(directory_.path("state/x/home/m.json")), "");
  EXPECT_EQ(refused(directory_.path("state/approved/y.json")), "");
}

// ---- files that a read-only mount keeps ---------------------------------------------------------

class ReadOnlyPlace : public PolicyPlace {
 protected:
  static bool yes(const std::string& /*path*/) { return true; }

  // What is kept, each with a sign of how; a refusal is its help.
  std::vector<std::string> kept(sandbox::PolicyPlace place) {
    place.is_read_only = true;
    const auto checked = check_policy_places({place}, plan_, launcher_);
    if (!checked) return {checked.error().help};
    std::vector<std::string> out;
    const std::size_t root = directory_.path("").size();
    for (const std::string& path : checked->read_only) out.push_back("=" + path.substr(root));
    for (const std::string& path : checked->missing) out.push_back("?" + path.substr(root));
    return out;
  }
  using Kept = std::vector<std::string>;
};

TEST_F(ReadOnlyPlace, LiesInsideAGrantOrIsNoneOfItsBusiness) {
  const std::string file = directory_.file("work/sub/mcp.json", "{}");
  EXPECT_EQ(kept({.path = file}), Kept{});
  grant("work", "read");
  EXPECT_EQ(kept({.path = file}), Kept{});
  grant("work", "delete");
  EXPECT_EQ(kept({.path = file}), Kept{"=work/sub/mcp.json"});
  EXPECT_EQ(kept({.path = "sub/mcp.json"}), Kept{"=work/sub/mcp.json"});
  EXPECT_EQ(kept({.path = directory_.file("safe/mcp.json", "{}")}), Kept{});
}

TEST_F(ReadOnlyPlace, HasTheNameThatTheGrantGivesIt) {
  directory_.file("work/sub/mcp.json", "{}");
  grant("work", "write");
  EXPECT_EQ(kept({.path = "/proc/self/root" + directory_.path("work/sub/mcp.json")}),
            Kept{"=work/sub/mcp.json"});
}

TEST_F(ReadOnlyPlace, EveryLinkOnTheWayIsOneToo) {
  directory_.file("work/real.json", "{}");
  grant("work", "write");
  EXPECT_EQ(kept({.path = directory_.link("safe/mcp.json", directory_.path("work/real.json"))}),
            Kept{"=work/real.json"});
  EXPECT_EQ(kept({.path = directory_.link("work/mcp.json", "real.json")}),
            (Kept{"=work/mcp.json", "=work/real.json"}));
  directory_.link("work/way", "sub");
  directory_.file("work/sub/x.json", "{}");
  EXPECT_EQ(kept({.path = directory_.path("work/way/x.json")}),
            (Kept{"=work/way", "=work/sub/x.json"}));
}

TEST_F(ReadOnlyPlace, ThatIsNotThereIsWatchedOrRefused) {
  grant("work", "write");
  const std::string path = directory_.path("work/none/at/all.json");
  EXPECT_EQ(kept({.path = path, .may_be_missing = true}), Kept{"?work/none/at/all.json"});
  EXPECT_TRUE(kept({.path = path}).front().starts_with("keep it outside"));
  EXPECT_EQ(kept({.path = directory_.path("safe/none")}), Kept{});
}

TEST_F(ReadOnlyPlace, NoMountKeepsWhatAGrantNames) {
  const std::string file = directory_.file("work/mcp.json", "{}");
  grant("work/mcp.json", "write");
  EXPECT_TRUE(kept({.path = file}).front().starts_with("grant another file"));
  EXPECT_EQ(kept({.path = file, .may_be_named = yes}), Kept{});
  // One that would be made for the server.
  grant("work/new.json", "write");
  EXPECT_TRUE(kept({.path = directory_.path("work/new.json"), .may_be_missing = true})
                  .front()
                  .starts_with("grant another file"));
}

TEST_F(ReadOnlyPlace, APatternDoesNotNameIt) {
  const std::string file = directory_.file("work/mcp.json", "{}");
  grant("work/*.json", "write", Kind::entries);
  EXPECT_EQ(kept({.path = file, .may_be_named = yes}), Kept{"=work/mcp.json"});
}

TEST_F(ReadOnlyPlace, WhatIsHiddenNeedsNoMount) {
  const std::string file = directory_.file("work/.cursor/mcp.json", "{}");
  grant("work", "write");
  grant("work/.cursor", "", Kind::mask);
  EXPECT_EQ(kept({.path = file}), Kept{});
}

TEST_F(ReadOnlyPlace, InTheHomeOfAServerThereIsNoMount) {
  launcher_.state = directory_.directory("state/x/home");
  EXPECT_TRUE(kept({.path = directory_.file("state/x/home/mcp.json", "{}")})
                  .front()
                  .starts_with("keep it outside"));
}

TEST_F(PolicyPlace, AnotherNameOfTheSameDirectoryCounts) {
  directory_.file("work/m.json", "{}");
  grant("work", "write");
  // A second name without a link, as a bind mount gives it.
  EXPECT_NE(refused("/proc/self/root" + directory_.path("work/m.json")), "");
}

}  // namespace
}  // namespace capgate::sandbox
