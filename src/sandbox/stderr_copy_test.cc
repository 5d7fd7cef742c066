#include "sandbox/stderr_copy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <regex>
#include <string>
#include <thread>

#include "sys/file.h"

namespace capgate::sandbox {
namespace {

constexpr std::size_t burst = 1U << 20U;

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  void close(int end) { ::close(std::exchange(ends[end], -1)); }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int ends[2] = {-1, -1};
};

// As the supervisor does it: while the server runs, and then what is left.
[[noreturn]] void copy_all(Pipe& server, Pipe& out) {
  server.close(1);
  ::dup2(out.ends[1], STDERR_FILENO);
  ::close(out.ends[0]);
  ::close(out.ends[1]);
  StderrCopy copy(server.ends[0]);
  for (int i = 0; i < 4; ++i) {
    pollfd poll = copy.wanted();
    ::poll(&poll, 1, -1);
    copy.step();
  }
  copy.drain();
  ::_exit(0);
}

// What arrives when the server writes `text` and ends. In a child, since it writes to stderr.
std::string copied(const std::string& text) {
  Pipe server;
  Pipe out;
  const pid_t child = ::fork();
  if (child == 0) copy_all(server, out);
  server.close(0);
  out.close(1);
  std::thread writer([&] {
    (void)sys::write_all(server.ends[1], text);
    server.close(1);
  });
  std::string received;
  char piece[65536];
  for (ssize_t size = 0; (size = ::read(out.ends[0], piece, sizeof(piece))) > 0;) {
    received.append(piece, static_cast<std::size_t>(size));
  }
  writer.join();
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return received;
}

std::uint64_t left_out(const std::string& text) {
  std::uint64_t sum = 0;
  const std::regex line("capgate: ([0-9]+) bytes of the server's stderr were left out\n");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), line); at != std::sregex_iterator();
       ++at) {
    sum += std::stoull((*at)[1]);
  }
  return sum;
}

TEST(StderrCopy, BytesPassUnchanged) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  EXPECT_EQ(copied(text), text);
}

TEST(StderrCopy, ABurstPassesWhole) {
  const std::string text(burst, 'x');
  EXPECT_TRUE(copied(text) == text);
}

// Nothing can be said of how much time passes, so only sums are compared.
TEST(StderrCopy, AFloodIsCutAndEveryByteIsCounted) {
  const std::string flood(16 * burst, 'x');
  const std::string received = copied(flood);
  const auto passed = static_cast<std::uint64_t>(std::ranges::count(received, 'x'));
  EXPECT_GE(passed, burst - 4096);
  EXPECT_LT(passed, flood.size() / 2);
  EXPECT_EQ(passed + left_out(received), flood.size());
}

TEST(StderrCopy, AReaderThatIsGoneDoesNotStopIt) {
  Pipe server;
  Pipe out;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGPIPE, SIG_IGN);
    out.close(0);
    server.close(1);
    ::dup2(out.ends[1], STDERR_FILENO);
    StderrCopy copy(server.ends[0]);
    copy.drain();
    ::_exit(0);
  }
  server.close(0);
  out.close(0);
  out.close(1);
  EXPECT_TRUE(sys::write_all(server.ends[1], std::string(100'000, 'x')));
  server.close(1);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(StderrCopy, AReaderThatDoesNotReadDoesNotBlockTheSupervisor) {
  Pipe server;
  Pipe out;
  const pid_t child = ::fork();
  if (child == 0) {
    server.close(1);
    ::dup2(out.ends[1], STDERR_FILENO);
    StderrCopy copy(server.ends[0]);
    copy.drain();  // gives up after its patience; a blocking write would stay
    ::_exit(0);
  }
  server.close(0);
  std::thread writer([&] { (void)sys::write_all(server.ends[1], std::string(60'000, 'x')); });
  writer.join();
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace capgate::sandbox
