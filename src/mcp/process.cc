#include "mcp/process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/child.h"
#include "sys/file.h"

namespace capgate::mcp {
namespace {

struct PipePair {
  sys::Fd read;
  sys::Fd write;
};

// Not one of the first three numbers, which are free where the caller closed them.
sys::Sys<sys::Fd> away_from_stdio(sys::Fd fd) {
  if (fd.get() > STDERR_FILENO) return fd;
  sys::Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (copy.get() < 0) return std::unexpected(sys::SysError{"fcntl", errno, ""});
  return copy;
}

sys::Sys<PipePair> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(sys::SysError{"pipe2", errno, ""});
  sys::Fd read(ends[0]);
  sys::Fd write(ends[1]);
  sys::Fd read_away = TRY(away_from_stdio(std::move(read)));
  sys::Fd write_away = TRY(away_from_stdio(std::move(write)));
  return PipePair{std::move(read_away), std::move(write_away)};
}

// ---- in the child: only async-signal-safe calls -------------------------------------------------

struct Child {
  const char* program;
  char* const* words;
  int stdio[3];
  int failure;  // takes the errno of what fails; closed by the exec
  pid_t parent;
};

bool prepare(const Child& child) {
  // It ends with its owner, also where that one is killed.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || ::setpgid(0, 0) != 0) return false;
  if (::getppid() != child.parent) ::_exit(125);
  sys::default_signals();
  for (int fd = 0; fd < 3; ++fd) {
    if (::dup2(child.stdio[fd], fd) < 0) return false;
  }
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return false;
  return sys::unblock_signals();
}

[[noreturn]] void run_child(const Child& child) {
  if (prepare(child)) ::execve(child.program, child.words, environ);
  const int error = errno;
  (void)!::write(child.failure, &error, sizeof(error));
  ::_exit(125);
}

// ---- in the parent ------------------------------------------------------------------------------

// No handler of ours may run in the child.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    (void)::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  SignalsHeld(SignalsHeld&&) = delete;
  SignalsHeld& operator=(SignalsHeld&&) = delete;
  ~SignalsHeld() { (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

struct Spawned {
  sys::Fd process;
  pid_t pid = -1;
};

sys::Sys<Spawned> spawn(const Child& child) {
  const SignalsHeld held;
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &args, sizeof(args));
  if (pid == 0) run_child(child);
  if (pid < 0) return std::unexpected(sys::SysError{"clone3", errno, child.program});
  return Spawned{sys::Fd(pidfd), static_cast<pid_t>(pid)};
}

int exit_code_of(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

// Reads what nobody wants, so that the writer can go on to its end. False: it is at its end.
bool discard(int fd) {
  char buffer[16384];
  const ssize_t got = ::read(fd, buffer, sizeof(buffer));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

// The child `pid` of `parent`, if it still is one: its number may be another's by now.
sys::Fd open_child(pid_t parent, pid_t pid) {
  sys::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) return {};
  const auto status = sys::read_file(format("/proc/{}/status", pid), 65536);
  if (!status || !status->contains(format("\nPPid:\t{}\n", parent))) return {};
  pollfd ended{process.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 0 ? std::move(process) : sys::Fd();
}

// A supervisor that loses its children cleans up behind them; one that is killed cannot.
void kill_children(pid_t parent) {
  const auto children = sys::read_file(format("/proc/{0}/task/{0}/children", parent), 65536);
  if (!children) return;
  for (const std::string_view word : EachPart(*children, ' ')) {
    const auto pid = parse_decimal(word);
    if (!pid) continue;
    const sys::Fd child = open_child(parent, static_cast<pid_t>(*pid));
    if (child.get() >= 0) {
      (void)::syscall(SYS_pidfd_send_signal, child.get(), SIGKILL, nullptr, 0);
    }
  }
}

}  // namespace

sys::Sys<Process> Process::start(const std::string& program,
                                 const std::vector<std::string>& words) {
  auto in = TRY(make_pipe());
  auto out = TRY(make_pipe());
  auto err = TRY(make_pipe());
  auto failure = TRY(make_pipe());
  for (const sys::Fd* fd : {&in.write, &out.read, &err.read}) {
    if (::fcntl(fd->get(), F_SETFL, O_NONBLOCK) != 0) {
      return std::unexpected(sys::SysError{"fcntl", errno, ""});
    }
  }
  const std::vector<char*> pointers = sys::exec_words(words);
  auto spawned = TRY(spawn({.program = program.c_str(),
                            .words = pointers.data(),
                            .stdio = {in.read.get(), out.write.get(), err.write.get()},
                            .failure = failure.write.get(),
                            .parent = ::getpid()}));
  Process started(std::move(spawned.process), spawned.pid, std::move(in.write), std::move(out.read),
                  std::move(err.read));
  failure.write = sys::Fd();
  int error = 0;
  if (::read(failure.read.get(), &error, sizeof(error)) == sizeof(error)) {
    return std::unexpected(sys::SysError{"execve", error, program});
  }
  return sys::Sys<Process>(std::move(started));
}

Pipes Process::pipes(int cancel) {
  return {.to = to_.get(), .from = from_.get(), .cancel = cancel, .errors = &errors_};
}

bool Process::has_ended_by(Clock::time_point deadline) {
  for (;;) {
    pollfd polls[] = {
        {process_.get(), POLLIN, 0}, {from_.get(), POLLIN, 0}, {errors_.fd(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int wait = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
    const bool is_ready = ::poll(polls, std::size(polls), wait) > 0;
    if (is_ready && polls[1].revents != 0 && !discard(from_.get())) from_ = sys::Fd();
    if (is_ready && polls[2].revents != 0) errors_.step();
    // What it said last is read before its end is seen.
    const bool said = is_ready && (polls[2].revents & POLLIN) != 0;
    if (is_ready && polls[0].revents != 0 && !said) return true;
    if (left <= 0) return is_ready && polls[0].revents != 0;
  }
}

int Process::end(std::chrono::milliseconds grace) {
  if (process_.get() < 0) return status_;
  to_ = sys::Fd();
  const auto send = [&](int signal) {
    (void)::syscall(SYS_pidfd_send_signal, process_.get(), signal, nullptr, 0);
  };
  // The process is not reaped before its end, so its number stays its own.
  if (!has_ended_by(Clock::now() + grace)) {
    send(SIGTERM);
    if (!has_ended_by(Clock::now() + grace)) {
      kill_children(pid_);
      if (!has_ended_by(Clock::now() + grace)) send(SIGKILL);
    }
  }
  siginfo_t info{};
  while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process_.get()), &info,
                  WEXITED) != 0 &&
         errno == EINTR) {
  }
  process_ = sys::Fd();
  status_ = exit_code_of(info);
  return status_;
}

}  // namespace capgate::mcp
