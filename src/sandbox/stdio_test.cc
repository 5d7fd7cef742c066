#include "sandbox/stdio.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "support/requirement.h"
#include "support/temp_directory.h"
#include "sys/fd.h"
#include "text/json.h"

namespace capgate::sandbox {
namespace {

using sys::Fd;
using test::TempDirectory;

const Refusal refusal{.message = "it \"cannot\" be", .help = "do\nthis"};

Fd open_file(const std::string& path, int flags = O_RDONLY) {
  Fd file(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY));
  EXPECT_GE(file.get(), 0) << path;
  return file;
}

Fd socket_of(int type) { return Fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0)); }

Fd listening_at(const std::string& path) {
  Fd socket = socket_of(SOCK_STREAM);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::listen(socket.get(), 1), 0);
  return socket;
}

bool half_of_a_pair_passes(int type) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
  const Fd first(ends[0]);
  const Fd second(ends[1]);
  return may_pass(first.get());
}

TEST(Stdio, PipesFilesAndTerminalsPass) {
  const TempDirectory directory;
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  EXPECT_TRUE(may_pass(read_end.get()));
  EXPECT_TRUE(may_pass(write_end.get()));
  EXPECT_TRUE(may_pass(open_file(directory.file("file", "text")).get()));
  EXPECT_TRUE(may_pass(open_file("/dev/null", O_RDWR).get()));
  const Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_EQ(::unlockpt(terminal.get()), 0);
  EXPECT_TRUE(may_pass(open_file(::ptsname(terminal.get()), O_RDWR).get()));
}

TEST(Stdio, OnlyTheStreamsOfSocketpairPass) {
  EXPECT_TRUE(half_of_a_pair_passes(SOCK_STREAM));
  EXPECT_FALSE(half_of_a_pair_passes(SOCK_DGRAM));
  EXPECT_FALSE(half_of_a_pair_passes(SOCK_SEQPACKET));
}

TEST(Stdio, ANamedSocketDoesNotPass) {
  const TempDirectory directory;
  EXPECT_FALSE(may_pass(listening_at(directory.path("socket")).get()));
}

// A connection that a service accepted has the service's name.
TEST(Stdio, AnAcceptedConnectionDoesNotPass) {
  const TempDirectory directory;
  const Fd listener = listening_at(directory.path("socket"));
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const Fd client = socket_of(SOCK_STREAM);
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  const Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_FALSE(may_pass(accepted.get()));
}

// It belongs to the host's network namespace, so it could reach abstract sockets there.
TEST(Stdio, ASocketThatIsNotConnectedDoesNotPass) {
  EXPECT_FALSE(may_pass(socket_of(SOCK_STREAM).get()));
}

TEST(Stdio, ANetworkSocketDoesNotPass) {
  EXPECT_FALSE(may_pass(Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)).get()));
}

TEST(Stdio, ADirectoryDoesNotPass) {
  EXPECT_FALSE(may_pass(open_file("/", O_RDONLY | O_DIRECTORY).get()));
  EXPECT_FALSE(may_pass(open_file("/", O_PATH).get()));
}

TEST(Stdio, ADescriptorThatIsNotOpenDoesNotPass) { EXPECT_FALSE(may_pass(999)); }

// /dev/null shares its major number with the memory and the log of the kernel.
TEST(Stdio, TheKernelsMemoryAndLogDoNotPass) {
  bool opened = false;
  for (const char* path : {"/dev/mem", "/dev/port", "/dev/kmsg"}) {
    const Fd device(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (device.get() < 0) continue;
    opened = true;
    EXPECT_FALSE(may_pass(device.get())) << path;
  }
  CAPGATE_REQUIRE(opened,
                  "none of them can be opened: needs root, and CAP_SYS_RAWIO or CAP_SYSLOG");
}

// What check_stdio says in a process whose descriptor `number` is `fd`: 0 if it passes.
int checked_with(int fd, int number) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; ++i) ::dup2(null, i);
    if (fd >= 0) {
      ::dup2(fd, number);
    } else {
      ::close(number);
    }
    const auto result = check_stdio();
    if (result) ::_exit(0);
    constexpr const char* names[] = {"standard input", "standard output", "standard error"};
    ::_exit(result.error().message.starts_with(names[number]) ? 1 : 2);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(Stdio, EachOfTheThreeIsCheckedAndNamed) {
  const Fd null = open_file("/dev/null", O_RDWR);
  const Fd directory = open_file("/", O_RDONLY | O_DIRECTORY);
  for (const int number : {0, 1, 2}) {
    EXPECT_EQ(checked_with(null.get(), number), 0) << number;
    EXPECT_EQ(checked_with(directory.get(), number), 1) << number;
    EXPECT_EQ(checked_with(-1, number), 1) << number;
  }
}

// ---- answers to a client that waits -------------------------------------------------------------

TEST(Answer, ARequestIsAnsweredWithTheReasonAndTheRemedy) {
  EXPECT_EQ(answer_to(R"({"jsonrpc":"2.0","id":1,"method":"initialize"})", refusal),
            R"({"jsonrpc":"2.0","id":1,"error":{"code":-31125,"message":)"
            R"("capgate refused to start the server: it \"cannot\" be",)"
            R"("data":{"remedy":"do\nthis"}}})");
}

TEST(Answer, TheIdIsReturnedAsItWas) {
  const auto with_id = [](const std::string& id) {
    return answer_to("{\"method\":\"m\",\"id\":" + id + "}", refusal);
  };
  for (const char* id :
       {"0", "-7", "12345678901234567890", "1.5", "\"a\"", "\"\"", "\"\\\"\\\\\""}) {
    const std::string expected = "{\"jsonrpc\":\"2.0\",\"id\":" + std::string(id) + ",\"error\":";
    EXPECT_TRUE(with_id(id).starts_with(expected)) << with_id(id);
  }
  EXPECT_TRUE(text::parse_json(with_id("\"\\u0000\\ud83d\\ude00\"")));
}

TEST(Answer, WhatIsNoRequestIsNotAnswered) {
  for (const char* line :
       {"", " ", "not json", "[]", "1", "null", "{}", R"({"method":"notifications/initialized"})",
        R"({"id":null,"method":"m"})", R"({"id":{},"method":"m"})", R"({"id":[1],"method":"m"})",
        R"({"id":true,"method":"m"})", R"({"id":1,"result":{}})", R"({"id":1,"method":"m")"}) {
    EXPECT_EQ(answer_to(line, refusal), "") << line;
  }
}

TEST(Answer, AnAnswerIsOneLine) {
  EXPECT_EQ(answer_to(R"({"id":"a\nb","method":"m"})", refusal).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace capgate::sandbox
