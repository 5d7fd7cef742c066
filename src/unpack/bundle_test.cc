#include "unpack/bundle.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <vector>

namespace capgate::unpack {
namespace {

// The parent's side, with programs in the place of the reader that a hostile bundle might make of
// it. The reader itself is tried in tests/e2e/import_test.py.

using Cause = BundleProblem::Cause;
using std::chrono::milliseconds;

sys::Fd open_program(const char* path) { return sys::Fd(::open(path, O_PATH | O_CLOEXEC)); }

struct Pipe {
  sys::Fd read;
  sys::Fd write;
};
Pipe make_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {.read = sys::Fd(ends[0]), .write = sys::Fd(ends[1])};
}

// cat gives back what it is given: an answer of our own making.
std::expected<Found, BundleProblem> answered(std::string_view answer) {
  Pipe pipe = make_pipe();
  EXPECT_EQ(::write(pipe.write.get(), answer.data(), answer.size()),
            static_cast<ssize_t>(answer.size()));
  pipe.write = sys::Fd();
  return read_bundle({.bundle = pipe.read, .program = open_program("/bin/cat")});
}

TEST(Bundle, AnswersAreUnderstood) {
  EXPECT_EQ(answered("m{}")->manifest, "{}");
  EXPECT_FALSE(answered("m{}")->is_signed);
  EXPECT_TRUE(answered("s{}")->is_signed);
  const auto refused = answered("rhas a \x1b[31mname");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cause, Cause::refused);
  EXPECT_EQ(refused.error().message, "has a \\x1b[31mname");
  EXPECT_EQ(answered("uno Landlock").error().message,
            "capgate-unpack cannot be confined: no Landlock");
  EXPECT_EQ(answered("uno Landlock").error().cause, Cause::machine);
  EXPECT_EQ(answered("x").error().message, "capgate-unpack answers with something unknown");
  EXPECT_EQ(answered("").error().message, "capgate-unpack ended with status 0");
}

TEST(Bundle, AReaderThatNeverEndsIsEnded) {
  const Pipe open = make_pipe();  // nothing ever comes out of it
  const auto begin = std::chrono::steady_clock::now();
  const auto found = read_bundle(
      {.bundle = open.read, .program = open_program("/bin/cat"), .longest = milliseconds(200)});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "takes too long to read");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(100));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST(Bundle, AReaderThatNeverStopsTalkingIsEnded) {
  const Pipe pipe = make_pipe();
  const auto found = read_bundle({.bundle = pipe.read, .program = open_program("/usr/bin/yes")});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "capgate-unpack answers with too much");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

// Descriptors for the pipe, and none for what is waited on.
TEST(Bundle, AMachineWithoutDescriptorsIsAnError) {
  const Pipe open = make_pipe();
  const sys::Fd program = open_program("/bin/cat");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<sys::Fd> taken;
  for (int fd = 0; (fd = ::dup(STDERR_FILENO)) >= 0;) taken.emplace_back(fd);
  taken.resize(taken.size() - 2);
  const auto found =
      read_bundle({.bundle = open.read, .program = program, .longest = milliseconds(200)});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().cause, Cause::machine);
  EXPECT_EQ(found.error().message, "pidfd_open: Too many open files");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(Bundle, AReaderThatFailsOrIsNotThereIsAnError) {
  const Pipe pipe = make_pipe();
  EXPECT_EQ(
      read_bundle({.bundle = pipe.read, .program = open_program("/bin/false")}).error().message,
      "capgate-unpack ended with status 1");
  EXPECT_EQ(
      read_bundle({.bundle = pipe.read, .program = open_program("/etc/passwd")}).error().message,
      "capgate-unpack ended with status 126");
}

}  // namespace
}  // namespace capgate::unpack
