// What capgate-init does when the host changes between the supervisor's look and the mount.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "sandbox/steps.h"
#include "support/init_stage.h"

namespace capgate::sandbox {
namespace {

using orders::MountKind;
using orders::Step;
using test::InitStage;
using test::TempDirectory;

// A granted directory, and beside it what the host puts in its place.
struct Host {
  TempDirectory place;
  std::string data = place.directory("data");

  Host() {
    std::filesystem::permissions(place.path(), std::filesystem::perms(0755));
    place.file("data/file", "granted\n", 0666);
    place.file("data/sub/file", "below\n");
    place.file("other/file", "not granted\n");
    place.file("other/sub/file", "not granted\n");
  }

  // What was at `name` is elsewhere, and something else has its name.
  void replace(const std::string& name, const std::string& by) const {
    std::filesystem::rename(place.path(name), place.path("old"));
    std::filesystem::rename(place.path(by), place.path(name));
  }
  // The name leads to the same file, by a link.
  void replace_by_link(const std::string& name) const {
    std::filesystem::rename(place.path(name), place.path("old"));
    std::filesystem::create_symlink(place.path("old"), place.path(name));
  }
};

void expect_output(InitStage& stage, const std::string& text) {
  stage.start();
  EXPECT_EQ(stage.output(), text);
  const auto report = stage.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, orders::Report::Kind::exited)
      << step_name(report->step) << ": " << std::strerror(report->value);
}

// init stops at the step, and the server never runs.
void expect_refused(InitStage& stage, Step step, int error) {
  stage.start();
  const auto report = stage.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, orders::Report::Kind::failed);
  EXPECT_EQ(step_name(report->step), step_name(step));
  EXPECT_EQ(std::strerror(report->value), std::string(std::strerror(error)));
  EXPECT_EQ(stage.output(), "");
}

// ---- binds --------------------------------------------------------------------------------------

class InitBind : public testing::Test {
 protected:
  InitBind() { stage.bind("/data", host.data); }

  Host host;
  InitStage stage{"cat /data/file"};
};

TEST_F(InitBind, ShowsTheDirectoryThatWasSeen) { expect_output(stage, "granted\n"); }

TEST_F(InitBind, RefusesAnotherDirectoryOfTheSameName) {
  host.replace("data", "other");
  expect_refused(stage, Step::mounts, ESTALE);
}

TEST_F(InitBind, RefusesALinkOfTheSameName) {
  host.replace_by_link("data");
  expect_refused(stage, Step::mounts, ESTALE);
}

TEST_F(InitBind, RefusesWhatIsGone) {
  std::filesystem::remove_all(host.data);
  expect_refused(stage, Step::mounts, ENOENT);
}

TEST_F(InitBind, ComparesTheDevice) {
  ++stage.bound.mounts.back().identity.device;
  expect_refused(stage, Step::mounts, ESTALE);
}

TEST_F(InitBind, ComparesTheType) {
  stage.bound.mounts.back().identity.type = S_IFREG;
  expect_refused(stage, Step::mounts, ESTALE);
}

TEST_F(InitBind, IsReadOnlyWhereTheOrdersSayIt) {
  InitStage writer("echo more >>/data/file && echo written; cat /data/file");
  writer.bind("/data", host.data);
  writer.allow("/data", {"write_file", "truncate"});
  expect_output(writer, "granted\n");

  InitStage control("echo more >>/data/file && echo written; cat /data/file");
  control.bind("/data", host.data);
  control.bound.mounts.back().attributes &= ~std::uint64_t{MOUNT_ATTR_RDONLY};
  control.allow("/data", {"write_file", "truncate"});
  expect_output(control, "written\ngranted\nmore\n");
}

TEST_F(InitBind, IsClosedWithoutARuleOfLandlock) {
  std::erase_if(stage.bound.landlock, [](const BoundRule& rule) { return rule.path == "/data"; });
  expect_output(stage, "");
  EXPECT_NE(stage.errors().find("Permission denied"), std::string::npos);
}

// ---- mounts below a granted directory
// -------------------------------------------------------------

class InitBelow : public testing::Test {
 protected:
  InitBelow() { stage.bind("/data", host.data); }

  Host host;
  InitStage stage{"cat /data/sub/file"};
};

TEST_F(InitBelow, PinsTheDirectoryThatWasSeen) {
  stage.add(MountKind::pin, "/data/sub", host.place.path("data/sub"));
  expect_output(stage, "below\n");
}

TEST_F(InitBelow, RefusesToPinAnotherDirectory) {
  stage.add(MountKind::pin, "/data/sub", host.place.path("data/sub"));
  host.replace("data/sub", "other/sub");
  expect_refused(stage, Step::mounts, ESTALE);
}

TEST_F(InitBelow, CoversTheFileThatWasSeen) {
  stage.add(MountKind::cover, "/data/sub/file", host.place.path("data/sub/file"));
  expect_output(stage, "");
}

TEST_F(InitBelow, RefusesToCoverAnotherFile) {
  stage.add(MountKind::cover, "/data/sub/file", host.place.path("data/sub/file"));
  host.replace("data/sub/file", "other/sub/file");
  expect_refused(stage, Step::mounts, ESTALE);
}

TEST_F(InitBelow, RefusesWhereWhatIsToBeCoveredIsGone) {
  stage.add(MountKind::cover, "/data/sub/file", host.place.path("data/sub/file"));
  std::filesystem::remove(host.place.path("data/sub/file"));
  expect_refused(stage, Step::mounts, ENOENT);
}

// A link in a granted directory must not move a mount to another place of the sandbox.
TEST_F(InitBelow, FollowsNoLinkToAMountPoint) {
  stage.directory("/elsewhere");
  stage.directory("/elsewhere/dir");
  host.place.directory("data/way/dir");
  stage.add(MountKind::bind, "/data/way/dir", host.place.path("other"));
  std::filesystem::rename(host.place.path("data/way"), host.place.path("old"));
  std::filesystem::create_symlink("/elsewhere", host.place.path("data/way"));
  expect_refused(stage, Step::mounts, ELOOP);
}

TEST_F(InitBelow, FollowsNoLinkAtTheEndOfAMountPoint) {
  stage.directory("/elsewhere");
  host.place.directory("data/dir");
  stage.add(MountKind::bind, "/data/dir", host.place.path("other"));
  std::filesystem::remove(host.place.path("data/dir"));
  std::filesystem::create_symlink("/elsewhere", host.place.path("data/dir"));
  expect_refused(stage, Step::mounts, EINVAL);  // nothing can be mounted on a link
}

TEST_F(InitBelow, FollowsNoLinkToWhatLandlockAllows) {
  stage.allow("/data/sub", {"read_file", "make_reg"});
  host.replace_by_link("data/sub");
  expect_refused(stage, Step::landlock, ELOOP);
}

// ---- the program --------------------------------------------------------------------------------

class InitProgram : public testing::Test {
 protected:
  InitProgram() {
    std::filesystem::copy_file("/usr/bin/dash", host.place.path("data/tool"));
    std::filesystem::copy_file("/usr/bin/dash", host.place.path("other/tool"));
    stage.bind("/data", host.data);
    stage.allow("/data", {"execute"});
    stage.bound.program = "/data/tool";
    stage.bound.program_identity = *identify(host.place.path("data/tool"));
  }

  Host host;
  InitStage stage{"echo it runs"};
};

TEST_F(InitProgram, RunsTheOneThatWasSeen) { expect_output(stage, "it runs\n"); }

TEST_F(InitProgram, RefusesAnotherOneOfTheSameName) {
  host.replace("data/tool", "other/tool");
  expect_refused(stage, Step::program, ESTALE);
}

TEST_F(InitProgram, ComparesTheDevice) {
  ++stage.bound.program_identity.device;
  expect_refused(stage, Step::program, ESTALE);
}

// ---- the root -----------------------------------------------------------------------------------

TEST(InitRoot, HoldsNothingButTheOrders) {
  InitStage stage("ls -A /");
  stage.allow("/", {"read_dir"});
  expect_output(stage, "bin\nlib\nlib64\nproc\nusr\n");
}

TEST(InitRoot, CannotBeWritten) {
  InitStage stage("mkdir /new && echo made");
  stage.allow("/", {"read_dir", "make_dir"});
  expect_output(stage, "");
  EXPECT_NE(stage.errors().find("Read-only file system"), std::string::npos);
}

// The host's root would be found above the new one.
TEST(InitRoot, HasNoOtherRootBehindIt) {
  InitStage stage("cut -d' ' -f5 /proc/self/mountinfo");
  expect_output(stage, "/\n/usr\n/proc\n");
}

}  // namespace
}  // namespace capgate::sandbox
