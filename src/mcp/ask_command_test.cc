#include "mcp/ask_command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

#include "mcp/process.h"
#include "support/temp_directory.h"

namespace capgate::mcp {
namespace {

using Cause = AskProblem::Cause;
using std::chrono::milliseconds;
using test::TempDirectory;

AskedCommand shell(const std::string& script) {
  return {.program = "/bin/sh",
          .words = {"server", "-c", script},
          .limits = {.start = milliseconds(20'000)},
          .grace = milliseconds(100)};
}

// A legacy server of one tool; $first is what it does with the first line.
std::string legacy_server(const std::string& first) {
  return "read -r line; case $line in *server/discover*) " + first +
         R"(; read -r line;; esac
id=${line#*\"id\":}; id=${id%%,*}
echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2024-11-05","capabilities":{}}}'
read -r line; read -r line
id=$((id + 1))
echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"'$0'"}]}}'
)";
}

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

pid_t number_in(const std::string& path) {
  std::ifstream file(path);
  pid_t pid = 0;
  file >> pid;
  EXPECT_GT(pid, 0);
  return pid;
}

TEST(AskCommand, ItsToolsAreListed) {
  const auto answer = ask_command(
      shell(legacy_server(R"(echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601}}')")));
  ASSERT_TRUE(answer.has_value()) << answer.error().asked.message;
  ASSERT_EQ(answer->tools.size(), 1U);
  EXPECT_EQ(answer->tools[0].name, "server");  // argv[0] is passed on
}

TEST(AskCommand, AServerThatEndsOnTheProbeIsStartedAgain) {
  const TempDirectory directory;
  const std::string starts = directory.path("starts");
  const auto answer =
      ask_command(shell("echo >>" + starts + "; " + legacy_server("echo bye >&2; exit 3")));
  ASSERT_TRUE(answer.has_value()) << answer.error().asked.message;
  EXPECT_EQ(std::filesystem::file_size(starts), 2U);
}

TEST(AskCommand, HowItEndedIsTold) {
  const auto answer = ask_command(shell("echo no token >&2; exit 3"));
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().asked.cause, Cause::closed);
  EXPECT_EQ(answer.error().status, 3);
  EXPECT_EQ(answer.error().errors, "no token\n");
}

TEST(AskCommand, AProgramThatCannotBeRunIsTold) {
  const auto answer = ask_command({.program = "/nonexistent", .words = {"x"}});
  ASSERT_FALSE(answer.has_value());
  EXPECT_TRUE(answer.error().asked.message.contains("No such file"))
      << answer.error().asked.message;
}

TEST(AskCommand, ASilentServerIsEnded) {
  const TempDirectory directory;
  AskedCommand command = shell("echo $$ >" + directory.path("pid") + "; exec sleep 1000");
  command.limits = {.start = milliseconds(500), .probe = milliseconds(50)};
  const auto answer = ask_command(command);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().asked.cause, Cause::late);
  EXPECT_EQ(answer.error().status, 128 + SIGTERM);
  EXPECT_FALSE(is_alive(number_in(directory.path("pid"))));
}

TEST(AskCommand, AServerThatRefusesToEndIsKilled) {
  const TempDirectory directory;
  AskedCommand command =
      shell("trap '' TERM; echo $$ >" + directory.path("pid") + "; while :; do echo x; done");
  command.limits = {.start = milliseconds(500), .probe = milliseconds(50)};
  const auto answer = ask_command(command);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().status, 128 + SIGKILL);
  EXPECT_FALSE(is_alive(number_in(directory.path("pid"))));
}

// What `capgate run` is: it must be able to clean up behind its server.
TEST(Process, ASupervisorOutlivesItsChild) {
  const TempDirectory directory;
  auto process = Process::start(
      "/bin/sh",
      {"sh", "-c",
       "trap '' TERM; (trap '' TERM; read -r never </proc/self/fd/3) 3<&0; sh -c 'trap \"\" "
       "TERM; while :; do sleep 1000; done'; touch " +
           directory.path("clean") + "; exit 7"});
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->end(milliseconds(300)), 7);
  EXPECT_TRUE(std::filesystem::exists(directory.path("clean")));
}

TEST(Process, ItsLastWordsAreRead) {
  auto process = Process::start("/bin/sh", {"sh", "-c", "cat >&2; echo the end >&2"});
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->end(milliseconds(10'000)), 0);
  EXPECT_EQ(process->errors(), "the end\n");
}

TEST(Process, ItHasNoDescriptorsOfOurs) {
  const int extra = ::dup(0);
  auto process = Process::start("/bin/sh", {"sh", "-c", "exec >&2; ls /proc/$$/fd"});
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->end(milliseconds(10'000)), 0);
  ::close(extra);
  EXPECT_EQ(process->errors(), "0\n1\n2\n");
}

}  // namespace
}  // namespace capgate::mcp
