#include "engines/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace capgate::engines {
namespace {

using std::chrono::milliseconds;

Start shell(const std::string& script) {
  return {.program = "/bin/sh", .arguments = {"sh", "-c", script}, .environment = {"A=b"}};
}

Finished finished(const std::string& script, milliseconds longest = milliseconds(20'000)) {
  const auto out = run_command(shell(script), longest);
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out.value_or(Finished{});
}

TEST(Process, GivesWhatItPrintsAndHowItEnded) {
  const Finished out = finished("echo one; echo two >&2; exit 7");
  EXPECT_EQ(out.status, 7);
  EXPECT_EQ(out.output, "one\ntwo\n");
  EXPECT_EQ(finished("kill -TERM $$").status, 128 + SIGTERM);
}

TEST(Process, HasOnlyTheEnvironmentThatItIsGiven) {
  ASSERT_EQ(::setenv("CAPGATE_TEST_CANARY", "canary", 1), 0);
  const Finished out = finished("echo $A $CAPGATE_TEST_CANARY");
  EXPECT_EQ(out.output, "b\n");
}

TEST(Process, HasOnlyTheDescriptorsThatItIsGiven) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  // One that would be inherited, and one whose number another one is to get.
  const sys::Fd open_to_all(::fcntl(pipe->read.get(), F_DUPFD, 20));
  const sys::Fd in_the_way(::fcntl(pipe->read.get(), F_DUPFD_CLOEXEC, 9));
  Start start = shell("cat <&9; for fd in 20 10; do test -e /proc/self/fd/$fd && echo $fd; done");
  ASSERT_EQ(::write(pipe->write.get(), "through\n", 8), 8);
  pipe->write = sys::Fd();
  start.descriptors = {{pipe->read.get(), 9}};
  const auto out = run_command(start, milliseconds(20'000));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->output, "through\n");
}

TEST(Process, IsKilledWhenItTakesTooLong) {
  const Finished out = finished("exec sleep 1000", milliseconds(200));
  EXPECT_EQ(out.status, 128 + SIGKILL);
}

TEST(Process, SaysWhyItCannotBeStarted) {
  const auto out = run_command({.program = "/nosuch", .arguments = {"x"}}, milliseconds(1000));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "cannot start /nosuch: No such file or directory");
}

TEST(Process, AnEngineIsFoundByItsFixedPath) {
  const auto missing = find_engine("capgate-no-such-engine");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message.starts_with(
      "--engine capgate-no-such-engine: /usr/bin/capgate-no-such-engine: No such file"));
  EXPECT_TRUE(missing.error().help.contains("apt install capgate-no-such-engine"));
  EXPECT_EQ(find_engine("env").value_or(""), "/usr/bin/env");
}

}  // namespace
}  // namespace capgate::engines
