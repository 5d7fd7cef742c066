#include "unpack/bundle.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "sandbox/beside.h"
#include "sys/child.h"
#include "unpack/wire.h"

namespace capgate::unpack {
namespace {

using Cause = BundleProblem::Cause;
using Clock = std::chrono::steady_clock;

std::unexpected<BundleProblem> refuse(Cause cause, std::string message) {
  return std::unexpected(BundleProblem{.cause = cause, .message = std::move(message)});
}

std::unexpected<BundleProblem> failed(std::string_view what) {
  return refuse(Cause::machine, format("{}: {}", what, std::strerror(errno)));
}

// ---- in the child: only async-signal-safe calls -------------------------------------------------

// The bundle is 0, the answer 1, and nothing else is open.
[[noreturn]] void run_child(int bundle, int program, int answer, pid_t parent) {
  constexpr int above = 16;
  sys::default_signals();
  if (!sys::unblock_signals() || ::setsid() < 0 || ::chdir("/") != 0) ::_exit(125);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || ::getppid() != parent) ::_exit(125);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  bundle = ::fcntl(bundle, F_DUPFD_CLOEXEC, above);
  program = ::fcntl(program, F_DUPFD_CLOEXEC, above);
  answer = ::fcntl(answer, F_DUPFD_CLOEXEC, above);
  if (null < 0 || bundle < 0 || program < 0 || answer < 0 || ::dup2(bundle, STDIN_FILENO) < 0 ||
      ::dup2(answer, STDOUT_FILENO) < 0 || ::dup2(null, STDERR_FILENO) < 0 ||
      ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    ::_exit(125);
  }
  const char* const arguments[] = {"capgate-unpack", nullptr};
  const char* const environment[] = {nullptr};
  ::syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
  ::_exit(126);
}

// ---- in the parent ------------------------------------------------------------------------------

// A child that is killed and reaped at the end, whatever the end is.
class Running {
 public:
  explicit Running(pid_t pid) : pid_(pid) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  Running(Running&&) = delete;
  Running& operator=(Running&&) = delete;
  ~Running() { (void)end(); }

  // Its wait status, or -1. Kills it, if it still runs.
  int end() {
    if (pid_ < 0) return status_;
    // The pid is its own until it is reaped, which happens below and nowhere else. It may have
    // ended.
    (void)::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status_, 0) < 0) {
      if (errno != EINTR) {
        status_ = -1;
        break;
      }
    }
    pid_ = -1;
    return status_;
  }

  // What wait() waits on. False, with errno: this machine has none left.
  [[nodiscard]] bool watch() {
    pidfd_ = sys::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    return pidfd_.get() >= 0;
  }

  // Waits until then for it to end by itself; after watch().
  void wait(Clock::time_point until) const {
    while (true) {
      pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
      const int got = ::poll(&ended, 1, milliseconds_until(until));
      if (got >= 0 || errno != EINTR) return;
    }
  }

  static int milliseconds_until(Clock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    return left <= 0 ? 0 : static_cast<int>(left);
  }

 private:
  pid_t pid_;
  sys::Fd pidfd_;
  int status_ = -1;
};

// Everything up to the end of the stream: at most one byte more than an answer may have.
std::expected<std::string, BundleProblem> read_answer(int from, Clock::time_point until) {
  std::string out;
  std::array<char, 65536> buffer{};
  while (out.size() <= longest_answer) {
    pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
    const int got = ::poll(&ready, 1, Running::milliseconds_until(until));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("poll");
    if (got == 0) return refuse(Cause::refused, "takes too long to read");
    const ssize_t size = ::read(from, buffer.data(), buffer.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size < 0) return failed("read");
    if (size == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return refuse(Cause::machine, "capgate-unpack answers with too much");
}

std::expected<Found, BundleProblem> understand(std::string answer, int status) {
  if (WIFSIGNALED(status)) {
    return refuse(Cause::refused,
                  format("cannot be read: the reader was stopped by signal {}", WTERMSIG(status)));
  }
  if (status != 0 || answer.empty()) {
    return refuse(Cause::machine, format("capgate-unpack ended with status {}",
                                         WIFEXITED(status) ? WEXITSTATUS(status) : -1));
  }
  const char kind = answer.front();
  answer.erase(0, 1);
  switch (kind) {
    case answer_manifest: return Found{.manifest = std::move(answer), .is_signed = false};
    case answer_signed_manifest: return Found{.manifest = std::move(answer), .is_signed = true};
    // What a hostile bundle made of the reader's words is text, and nothing more.
    case answer_refused: return refuse(Cause::refused, escape_for_terminal(answer.substr(0, 400)));
    case answer_unconfined:
      return refuse(Cause::machine, format("capgate-unpack cannot be confined: {}",
                                           escape_for_terminal(answer.substr(0, 400))));
    default: return refuse(Cause::machine, "capgate-unpack answers with something unknown");
  }
}

}  // namespace

std::expected<sys::Fd, sandbox::Refusal> find_reader() {
  return sandbox::find_beside(
      {.name = "capgate-unpack",
       .needed_by = "reading a bundle needs",
       .otherwise = "; or unpack the bundle, and import its manifest.json"});
}

std::expected<Found, BundleProblem> read_bundle(const Reader& reader) {
  const Clock::time_point until = Clock::now() + reader.longest;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed("pipe2");
  const sys::Fd from(ends[0]);
  sys::Fd to(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return failed("fork");
  if (pid == 0) run_child(reader.bundle.get(), reader.program.get(), to.get(), parent);
  Running child(pid);
  if (!child.watch()) return failed("pidfd_open");
  to = sys::Fd();
  auto answer = read_answer(from.get(), until);
  if (!answer) return std::unexpected(std::move(answer).error());
  child.wait(until);
  return understand(*std::move(answer), child.end());
}

}  // namespace capgate::unpack
