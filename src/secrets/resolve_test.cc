#include <gtest/gtest.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <chrono>
#include <ctime>

#include "base/format.h"
#include "secrets/provider_lab.h"
#include "support/requirement.h"
#include "sys/fd.h"

namespace capgate::secrets {
namespace {

class Resolve : public ProviderTest {};

TEST_F(Resolve, AVariableOfTheLauncher) {
  const auto out = resolved("env:TOKEN");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->value.view(), "of-the-launcher");
  EXPECT_EQ(out->expires, 0);
  EXPECT_EQ(refusal("env:MISSING"), "the variable MISSING is not set");
  EXPECT_EQ(refusal("env:TOKE"), "the variable TOKE is not set");
  EXPECT_TRUE(refusal("env:EMPTY").contains("is empty"));
}

TEST_F(Resolve, AFileWithoutItsLastNewline) {
  const auto one = resolved("file:" + file("a", "value\n"));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->value.view(), "value");
  EXPECT_EQ(resolved("file:" + file("b", "value"))->value.view(), "value");
  EXPECT_EQ(resolved("file:" + file("c", "two\nlines\n\n"))->value.view(), "two\nlines\n");
}

TEST_F(Resolve, AFileThatOthersCanReadOrWriteIsRefused) {
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0644U, 0666U}) {
    const std::string said = refusal("file:" + file("a", "hidden-value", mode));
    EXPECT_TRUE(said.contains("others than the owner")) << said;
    EXPECT_FALSE(said.contains("hidden-value"));
  }
  for (const mode_t mode : {0600U, 0400U}) {
    EXPECT_TRUE(resolved("file:" + file("a", "value", mode))) << mode;
  }
}

TEST_F(Resolve, ALinkIsFollowedAndWhatItLeadsToDecides) {
  ASSERT_EQ(::symlink(file("open", "value", 0644).c_str(), path("link").c_str()), 0);
  EXPECT_TRUE(refusal("file:" + path("link")).contains("others than the owner"));
  ASSERT_EQ(::symlink(file("own", "value").c_str(), path("good").c_str()), 0);
  EXPECT_TRUE(resolved("file:" + path("good")));
}

TEST_F(Resolve, WhatIsNoFileIsRefusedWithoutWaiting) {
  EXPECT_TRUE(refusal("file:" + path("missing")).contains("No such file"));
  EXPECT_TRUE(refusal("file:" + directory_).contains("no regular file"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(refusal("file:" + path("pipe")).contains("no regular file"));
}

TEST_F(Resolve, AFileOfAnotherUserIsRefused) {
  CAPGATE_REQUIRE(::geteuid() == 0, "only root can give a file away");
  const std::string name = file("a", "value");
  ASSERT_EQ(::chown(name.c_str(), 12345, 12345), 0);
  EXPECT_TRUE(refusal("file:" + name).contains("belongs to user 12345"));
}

TEST_F(Resolve, WhatNoVariableCarriesIsRefused) {
  EXPECT_TRUE(refusal("file:" + file("a", "")).contains("is empty"));
  EXPECT_TRUE(refusal("file:" + file("a", "\n")).contains("is empty"));
  EXPECT_TRUE(refusal("file:" + file("a", std::string_view("a\0b", 3))).contains("NUL"));
  const std::string longest(longest_value, 'a');
  EXPECT_TRUE(resolved("file:" + file("a", longest + "\n")));
  EXPECT_TRUE(refusal("file:" + file("a", longest + "a")).contains("more than"));
  EXPECT_TRUE(refusal("file:" + file("a", longest + longest)).contains("more than"));
}

// ---- commands -----------------------------------------------------------------------------------

TEST_F(Resolve, ACommandIsFoundInPathAndRunWithoutAShell) {
  const auto out = resolved("cmd:printf '%s|%s\\n' \"a b\" $HOME;true");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->value.view(), "a b|$HOME;true");
}

TEST_F(Resolve, ACommandHasTheLaunchersEnvironmentAndNoInput) {
  environment_.emplace_back("VAULT=for-it");
  const std::string program = script("a", "cat; echo \"$VAULT\"\n");
  const auto out = resolved("cmd:" + program);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->value.view(), "for-it");
}

TEST_F(Resolve, ACommandGetsNoDescriptorOfOurs) {
  const sys::Fd ours(::dup(STDERR_FILENO));
  const auto out = resolved("cmd:ls /proc/self/fd");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->value.view(), "0\n1\n2\n3") << "3 is the directory that ls reads";
}

TEST_F(Resolve, ACommandThatFailsIsRefusedWithoutItsOutput) {
  const std::string said = refusal("cmd:" + script("a", "echo hidden-value; exit 3\n"));
  EXPECT_TRUE(said.contains("exit status 3")) << said;
  EXPECT_FALSE(said.contains("hidden-value"));
  EXPECT_TRUE(refusal("cmd:" + script("b", "kill -TERM $$\n")).contains("signal 15"));
  EXPECT_TRUE(refusal("cmd:no-such-program").contains("No such file"));
  EXPECT_TRUE(refusal("cmd:" + path("missing")).contains("No such file"));
  EXPECT_TRUE(refusal("cmd:" + file("c", "#!/bin/sh\n")).contains("Permission denied"));
  EXPECT_TRUE(refusal("cmd:" + file("d", "no program", 0700)).contains("Exec format"));
}

TEST_F(Resolve, ACommandThatPrintsWithoutEndIsKilled) {
  EXPECT_TRUE(refusal("cmd:yes hidden-value").contains("more than"));
}

// The number of the process that a script wrote down, gone and reaped.
void expect_gone(const std::string& file) {
  const auto pid = static_cast<pid_t>(std::stoi(*sys::read_file(file, 32)));
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// `file` holds the pid of a process that was killed. It is not our child, so we can only wait until
// it has ended. If it had not been killed, it would sleep for longer than we wait.
void expect_ended(const std::string& file) {
  const auto pid = static_cast<pid_t>(std::stoi(*sys::read_file(file, 32)));
  const sys::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) {
    EXPECT_EQ(errno, ESRCH);
    return;
  }
  pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&end, 1, 60'000), 1) << "it still runs";
}

TEST_F(Resolve, ACommandThatDoesNotEndIsKilledWithItsGroup) {
  Context hurried = context();
  hurried.command_limit = std::chrono::milliseconds(500);
  const std::string program = script(
      "a", format("echo $$ > {}; sleep 1000 & echo $! > {}; wait\n", path("pid"), path("child")));
  const auto start = std::chrono::steady_clock::now();
  const auto out = resolve(*parse_binding("TOKEN=cmd:" + program), hurried);
  ASSERT_FALSE(out);
  EXPECT_TRUE(out.error().message.contains("did not end")) << out.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(100));
  expect_gone(path("pid"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  expect_ended(path("child"));
}

TEST_F(Resolve, AChildThatKeepsThePipeIsNotWaitedFor) {
  const auto out = resolved(
      "cmd:" + script("a", format("sleep 1000 & echo $! > {}; echo value\n", path("child"))));
  // It may be an agent that serves later calls, so it goes on.
  EXPECT_EQ(::kill(static_cast<pid_t>(std::stoi(*sys::read_file(path("child"), 32))), SIGKILL), 0);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->value.view(), "value");
}

TEST_F(Resolve, ACommandIsReapedWhereChildrenAreIgnored) {
  ASSERT_NE(::signal(SIGCHLD, SIG_IGN), SIG_ERR);
  const auto out = resolved("cmd:echo value");
  EXPECT_EQ(::signal(SIGCHLD, SIG_DFL), SIG_IGN);
  ASSERT_TRUE(out) << out.error().message;
}

TEST_F(Resolve, ACommandWithATimeToLive) {
  const std::int64_t before = ::time(nullptr);
  const auto out = resolved("cmd?ttl=600:echo value");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_GE(out->expires, before + 600);
  EXPECT_LE(out->expires, ::time(nullptr) + 600);
}

TEST_F(Resolve, ACommandThatSaysWhenItExpires) {
  const std::string good = file("good", R"({"value": "abc", "expires": "2126-11-15T12:00:00Z"})");
  const auto out = resolved("cmd?json:cat " + good);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->value.view(), "abc");
  EXPECT_EQ(out->expires, 4'950'417'600);
  const std::string old = file("old", R"({"value": "abc", "expires": "2020-11-15T12:00:00Z"})");
  EXPECT_TRUE(refusal("cmd?json:cat " + old).contains("expired already"));
  const std::string bad = file("bad", R"({"value": "hidden-value"})");
  const auto refused = resolved("cmd?json:cat " + bad);
  ASSERT_FALSE(refused);
  EXPECT_FALSE((refused.error().message + refused.error().help).contains("hidden-value"));
}

TEST_F(Resolve, TheStoreIsAskedForTheServersEntry) {
  (void)script("capgate-store", "echo \"$@\"\n");
  const auto out = resolved("store:GITHUB");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->value.view(), "get --server box --name GITHUB");
}

// ---- systemd, keyring ---------------------------------------------------------------------------

TEST_F(Resolve, ACredentialOfSystemd) {
  (void)file("github", "value\n", 0400);
  EXPECT_TRUE(refusal("systemd-credential:github").contains("CREDENTIALS_DIRECTORY"));
  environment_.push_back("CREDENTIALS_DIRECTORY=" + directory_);
  const auto out = resolved("systemd-credential:github");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->value.view(), "value");
  // How an access list for the service's user shows.
  (void)file("listed", "value", 0440);
  EXPECT_TRUE(resolved("systemd-credential:listed"));
  (void)file("open", "value", 0444);
  EXPECT_TRUE(refusal("systemd-credential:open").contains("others than the owner"));
  EXPECT_TRUE(refusal("systemd-credential:missing").contains("No such file"));
}

long add_key(const std::string& name, std::string_view value, long ring) {
  return ::syscall(SYS_add_key, "user", name.c_str(), value.data(), value.size(), ring);
}

TEST_F(Resolve, AKeyOfTheKernel) {
  const std::string name = format("capgate-test-{}", ::getpid());
  for (const long ring : {KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING}) {
    const long key = add_key(name, "value-of-key", ring);
    CAPGATE_REQUIRE(key >= 0 || (errno != ENOSYS && errno != EPERM),
                    "this kernel, or the filter of this container, lets nobody keep keys");
    ASSERT_GE(key, 0) << errno;
    const auto out = resolved("keyring:" + name);
    EXPECT_EQ(::syscall(SYS_keyctl, KEYCTL_UNLINK, key, ring), 0);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->value.view(), "value-of-key");
    EXPECT_TRUE(refusal("keyring:" + name).contains("is not in the kernel's")) << ring;
  }
}

}  // namespace
}  // namespace capgate::secrets
