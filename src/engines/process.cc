#include "engines/process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/child.h"

namespace capgate::engines {
namespace {

using sandbox::Refusal;
using std::chrono::milliseconds;

std::unexpected<Refusal> refuse(std::string message, std::string help) {
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}

std::string_view package_of(std::string_view name) {
  if (name == "bwrap") return "bubblewrap";
  return name == "docker" ? "docker.io" : name;
}

// ---- in the child: only async-signal-safe calls -------------------------------------------------

struct Child {
  const Start& start;
  char* const* arguments;
  char* const* environment;
  int failed;  // takes errno if something does not work
  pid_t supervisor;
};

[[noreturn]] void give_up(int failed) {
  const int error = errno;
  (void)!::write(failed, &error, sizeof(error));
  ::_exit(125);
}

int highest_target(const Start& start) {
  int highest = STDERR_FILENO;
  for (const PassedFd& passed : start.descriptors) highest = std::max(highest, passed.to);
  return highest;
}

// First out of each other's way. The new number of `failed`, or -1.
int place_descriptors(const Child& child) {
  constexpr std::size_t most = 32;
  std::array<int, most> moved{};
  const auto& wanted = child.start.descriptors;
  if (wanted.size() > most) {
    errno = EMFILE;
    return -1;
  }
  const int above = highest_target(child.start) + 1;
  const int failed = ::fcntl(child.failed, F_DUPFD_CLOEXEC, above);
  if (failed < 0) return -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    moved[i] = ::fcntl(wanted[i].from, F_DUPFD_CLOEXEC, above);
    if (moved[i] < 0) return -1;
  }
  // What is not named does not pass.
  if (::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (::dup2(moved[i], wanted[i].to) < 0) return -1;
  }
  return failed;
}

[[noreturn]] void run_child(const Child& child) {
  for (const int procs : child.start.placement.cgroup_procs) {
    if (::write(procs, "0", 1) != 1) give_up(child.failed);
  }
  sys::default_signals();
  if (!sys::unblock_signals() || ::setsid() < 0 || ::chdir("/") != 0 ||
      ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
    give_up(child.failed);
  }
  if (::getppid() != child.supervisor) ::_exit(125);
  const int failed = place_descriptors(child);
  if (failed < 0) give_up(child.failed);
  ::execve(child.start.program.c_str(), child.arguments, child.environment);
  give_up(failed);
}

// ---- one command to its end ---------------------------------------------------------------------

// False at the end of the stream.
bool read_some(int fd, std::string& out) {
  constexpr std::size_t most = 65536;
  std::array<char, 4096> buffer{};
  const ssize_t size = ::read(fd, buffer.data(), buffer.size());
  if (size < 0) return errno == EINTR;
  const auto room = std::min<std::size_t>(static_cast<std::size_t>(size), most - out.size());
  out.append(buffer.data(), room);
  return size > 0;
}

}  // namespace

std::expected<std::string, Refusal> find_engine(std::string_view name) {
  std::string path = format("/usr/bin/{}", name);
  const std::string help = format(
      "install it, for example: sudo apt install {}; or leave --engine out", package_of(name));
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return refuse(format("--engine {}: {}: {}", name, path, std::strerror(errno)), help);
  }
  const bool is_roots = info.st_uid == 0 && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!S_ISREG(info.st_mode) || !is_roots || (info.st_mode & S_IXOTH) == 0) {
    return refuse(format("--engine {}: {} is no program that root alone can change", name, path),
                  help);
  }
  return path;
}

std::expected<Pipe, Refusal> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return refuse(format("cannot make a pipe: {}", std::strerror(errno)),
                  "raise the limit of open files (ulimit -n)");
  }
  return Pipe{.read = sys::Fd(ends[0]), .write = sys::Fd(ends[1])};
}

std::expected<Process, Refusal> start_process(const Start& start) {
  Pipe failure = TRY(make_pipe());
  const std::vector<char*> arguments = sys::exec_words(start.arguments);
  const std::vector<char*> environment = sys::exec_words(start.environment);
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD | CLONE_VFORK;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (start.placement.cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(start.placement.cgroup);
  }
  const pid_t self = ::getpid();
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
  if (pid == 0) {
    run_child({start, arguments.data(), environment.data(), failure.write.get(), self});
  }
  if (pid < 0) {
    return refuse(format("cannot start {}: {}", start.program, std::strerror(errno)),
                  "raise the limit of processes of this user");
  }
  Process process{.pidfd = sys::Fd(pidfd), .pid = pid};
  failure.write = sys::Fd();
  int error = 0;
  if (::read(failure.read.get(), &error, sizeof(error)) != sizeof(error)) return process;
  (void)reap(process);
  return refuse(format("cannot start {}: {}", start.program, std::strerror(error)),
                "see capgate doctor");
}

int reap(const Process& process) {
  siginfo_t info{};
  while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process.pidfd.get()), &info,
                  WEXITED) != 0) {
    if (errno != EINTR) return 125;
  }
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

std::expected<Finished, Refusal> run_command(const Start& start, milliseconds longest) {
  using Clock = std::chrono::steady_clock;
  Pipe pipe = TRY(make_pipe());
  const sys::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.get() < 0) return refuse("cannot open /dev/null", "see capgate doctor");
  Start own = start;
  own.descriptors.insert(own.descriptors.end(), {{null.get(), STDIN_FILENO},
                                                 {pipe.write.get(), STDOUT_FILENO},
                                                 {pipe.write.get(), STDERR_FILENO}});
  const Process process = TRY(start_process(own));
  pipe.write = sys::Fd();
  Finished out;
  const auto last = Clock::now() + longest;
  bool open = true;
  while (true) {
    pollfd polls[] = {{process.pidfd.get(), POLLIN, 0}, {open ? pipe.read.get() : -1, POLLIN, 0}};
    const auto left = std::chrono::ceil<milliseconds>(last - Clock::now()).count();
    const int count = left <= 0 ? 0 : ::poll(polls, 2, static_cast<int>(left));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      ::syscall(SYS_pidfd_send_signal, process.pidfd.get(), SIGKILL, nullptr, 0);
      break;
    }
    if (polls[1].revents != 0) open = read_some(pipe.read.get(), out.output);
    // What it started may keep the pipe: its own end is what counts.
    if (polls[0].revents != 0 && polls[1].revents == 0) break;
  }
  out.status = reap(process);
  return out;
}

}  // namespace capgate::engines
