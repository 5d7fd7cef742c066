// The throw-away process: its deadline, its answers, its end.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sandbox/doctor_probes.h"
#include "sys/fd.h"

namespace capgate::sandbox {
namespace {

std::int64_t now_in_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Reads until the last holder of the other end is gone. False: the time is up before.
bool read_until_end(const sys::Fd& pipe, std::int64_t deadline, std::vector<Answer>& answers) {
  while (true) {
    const std::int64_t left = deadline - now_in_milliseconds();
    if (left <= 0) return false;
    pollfd waiting{.fd = pipe.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(left)) <= 0) continue;  // the loop looks at the clock
    Answer answer;
    const ssize_t got = ::read(pipe.get(), &answer, sizeof(answer));
    if (got == 0) return true;
    // Writes this small are never torn.
    if (got == ssize_t{sizeof(answer)}) answers.push_back(answer);
  }
}

}  // namespace

void Reporter::tell(Answer answer) const {
  while (::write(fd_, &answer, sizeof(answer)) < 0 && errno == EINTR) {
  }
}

std::vector<Answer> in_a_child(Work work, const void* argument, int milliseconds) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const sys::Fd reading(ends[0]);
  sys::Fd writing(ends[1]);

  const pid_t child = ::fork();
  if (child < 0) return {};
  if (child == 0) {
    work(Reporter(writing.get()), argument);
    ::_exit(0);
  }
  writing = sys::Fd();

  std::vector<Answer> answers;
  const std::int64_t deadline = now_in_milliseconds() + milliseconds;
  if (!read_until_end(reading, deadline, answers)) {
    // Not reaped yet, so the number is still this child's. Its own children die with it.
    ::kill(child, SIGKILL);
    std::vector<Answer> too_late;
    (void)read_until_end(reading, deadline + 1000, too_late);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return answers;
}

}  // namespace capgate::sandbox
