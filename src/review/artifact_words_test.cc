#include "review/artifact_words.h"

#include <gtest/gtest.h>

#include <vector>

namespace capgate::review {
namespace {

using Words = std::vector<std::string>;

Tendency option(std::string_view target, const Words& words) {
  return judge_option(target, words).tendency;
}

TEST(ArtifactWords, ARestraintHasItsOperandsAndNoMore) {
  EXPECT_EQ(option("bwrap", {"--unshare-net"}), Tendency::restrains);
  EXPECT_EQ(option("bwrap", {"--unshare-net", "/bin/sh"}), Tendency::unknown);
  EXPECT_EQ(option("bwrap", {"--cap-drop", "CAP_CHOWN"}), Tendency::restrains);
  EXPECT_EQ(option("bwrap", {"--cap-drop"}), Tendency::unknown);
  EXPECT_EQ(option("bwrap", {"--cap-drop", "CAP_CHOWN", "/bin/sh"}), Tendency::unknown);
  EXPECT_EQ(option("docker", {"--cap-drop", "--privileged"}), Tendency::unknown);
  EXPECT_EQ(option("docker", {"--unshare-net"}), Tendency::unknown);
  EXPECT_EQ(option("docker", {"--read-only=false"}), Tendency::unknown);
  EXPECT_EQ(option("landlock", {"--read-only"}), Tendency::unknown);
  EXPECT_EQ(option("bwrap", {"--seccomp", "3"}), Tendency::unknown);  // the last one wins
  EXPECT_EQ(option("bwrap", {"--clearenv"}), Tendency::unknown);      // what stands before it
  EXPECT_EQ(option("bwrap", {"--remount-ro", "x"}), Tendency::unknown);
}

TEST(ArtifactWords, AnOptionEndsWhereItsOperandsDo) {
  const auto length = [](std::string_view target, const Words& words) {
    return option_length(target, words);
  };
  EXPECT_EQ(length("bwrap", {"--setenv", "A", "--unshare-net", "--b"}), 3U);
  EXPECT_EQ(length("bwrap", {"--size", "1", "--tmpfs", "/a", "--b"}), 4U);
  EXPECT_EQ(length("bwrap", {"--size", "1", "--unshare-net", "--tmpfs", "/a"}), std::nullopt);
  EXPECT_EQ(length("bwrap", {"--bind", "/a"}), std::nullopt);
  EXPECT_EQ(length("bwrap", {"--read-only=false"}), std::nullopt);
  EXPECT_EQ(length("podman", {"--http-proxy=false", "a"}), 1U);
  EXPECT_EQ(length("docker", {"--odd", "a"}), std::nullopt);
}

TEST(ArtifactWords, AMountMayHideAnother) {
  const auto same = judge_option("bwrap", Words{"--bind", "/a", "/a"});
  EXPECT_EQ(same.tendency, Tendency::grants);
  EXPECT_EQ(same.mount, "/a");
  EXPECT_FALSE(same.may_hide);
  EXPECT_TRUE(judge_option("bwrap", Words{"--ro-bind", "/dev/null", "/a"}).may_hide);
  EXPECT_TRUE(judge_option("bwrap", Words{"--bind", "/a/../b", "/a/../b"}).may_hide);
  EXPECT_TRUE(judge_option("docker", Words{"-v", "/a:/a"}).may_hide);
  const auto mount = [](std::string value) {
    return judge_option("docker", Words{"--mount", std::move(value)});
  };
  EXPECT_FALSE(mount("type=bind,source=/a,target=/a,readonly").may_hide);
  EXPECT_EQ(mount("type=bind,source=/a,target=/a,readonly").mount, "/a");
  EXPECT_EQ(mount("type=bind,source=/a,target=/a,target=/b").tendency, Tendency::unknown);
  EXPECT_EQ(mount("type=bind,source=/a").tendency, Tendency::unknown);
  EXPECT_EQ(mount("type=volume,source=/a,target=/a").tendency, Tendency::unknown);
  EXPECT_EQ(judge_option("bwrap", Words{"--proc", "/proc"}).mount, "/proc");
  EXPECT_EQ(judge_option("docker", Words{"--tmpfs", "/tmp:rw"}).mount, "/tmp");
}

TEST(ArtifactWords, ALineIsOneRule) {
  const auto rule = [](std::string_view line) { return judge_line("a.apparmor", line).tendency; };
  EXPECT_EQ(rule(R"(  "/a/**" mr,)"), Tendency::grants);
  EXPECT_EQ(rule(R"(  deny "/a{,/,/**}" wl,)"), Tendency::restrains);
  for (const std::string_view line :
       {R"(  deny "/a" w, "/b" w,)", R"(  deny /a w, network,)", R"(  deny "/a" w #,)",
        R"(  deny "/a\" w,)", R"(  deny "" w,)", R"(  deny "/a" ,)", R"(deny "/a" w,)", "  deny ",
        R"(  "/a" r, "/b" w,)", "  deny \"/a\r\" w,", R"(  deny "/a" w, )", "", "  deny \"/a\","}) {
    EXPECT_EQ(rule(line), Tendency::unknown) << line;
  }
  const auto unit = [](std::string_view line) { return judge_line("a.service", line); };
  EXPECT_EQ(unit(R"(BindPaths="/a":"/a")").mount, "/a");
  EXPECT_TRUE(unit(R"(BindPaths="/a":"/b")").may_hide);
  for (const std::string_view line :
       {R"(BindPaths="/a":"/a":rbind)", R"(BindPaths="/a":"/a" "/b":"/b")",
        "BindPaths=", R"(BindPaths="/a\x20":"/a\x20")", "ExecStart="}) {
    EXPECT_EQ(unit(line).tendency, Tendency::unknown) << line;
  }
  EXPECT_EQ(judge_line("a.conf", R"(  deny "/a" w,)").tendency, Tendency::unknown);
}

}  // namespace
}  // namespace capgate::review
