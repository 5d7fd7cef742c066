#include "clients/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::clients {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_errors = std::size_t{64} << 10U;
constexpr int tick_milliseconds = 100;

// ---- in the child: only async-signal-safe calls -------------------------------------------------

struct Child {
  char* const* words;
  char* const* environment;
  const char* directory;
  int input;
  int output;
  int errors;
  int failure;  // takes the errno of what fails; closed by the exec
  pid_t parent;
};

[[noreturn]] void run_child(const Child& child) {
  sys::default_signals();
  const bool ready =
      ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && ::setpgid(0, 0) == 0 &&
      ::getppid() == child.parent && ::chdir(child.directory) == 0 &&
      ::dup2(child.input, STDIN_FILENO) >= 0 && ::dup2(child.output, STDOUT_FILENO) >= 0 &&
      ::dup2(child.errors, STDERR_FILENO) >= 0 &&
      ::syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) == 0 && sys::unblock_signals();
  if (ready) ::execve(child.words[0], child.words, child.environment);
  const int error = errno;
  (void)!::write(child.failure, &error, sizeof(error));
  ::_exit(125);
}

// ---- in the parent ------------------------------------------------------------------------------

struct Pipe {
  sys::Fd read_end;
  sys::Fd write_end;

  [[nodiscard]] bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = sys::Fd(ends[0]);
    write_end = sys::Fd(ends[1]);
    return ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  }
};

// What it reads from: a file that has no name, so that nobody waits for anybody.
sys::Fd open_input(const std::string& text) {
  if (text.empty()) return sys::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  sys::Fd file(::memfd_create("capgate-input", MFD_CLOEXEC));
  if (file.get() < 0) return file;
  if (!sys::write_all(file.get(), text) || ::lseek(file.get(), 0, SEEK_SET) != 0) return sys::Fd();
  return file;
}

// Kills what is left of its group, and reaps it.
class Running {
 public:
  explicit Running(pid_t pid) : pid_(pid) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  Running(Running&&) = delete;
  Running& operator=(Running&&) = delete;
  ~Running() { (void)end(); }

  int end() {
    if (pid_ < 0) return status_;
    (void)::kill(-pid_, SIGKILL);
    (void)::kill(pid_, SIGKILL);  // before it has a group
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status_;
  }

 private:
  pid_t pid_;
  int status_ = 0;
};

// Everything that is there now; false when nothing more will come.
bool read_all(const sys::Fd& from, std::string& to, std::size_t most) {
  for (;;) {
    char part[16384];
    const ssize_t size = ::read(from.get(), part, sizeof(part));
    if (size > 0) to.append(part, static_cast<std::size_t>(size));
    if (size == 0) return false;
    if (size < 0 && errno != EINTR) return errno == EAGAIN;
    if (to.size() > most) return true;
  }
}

void keep_end(std::string& text, std::size_t most) {
  if (text.size() > 2 * most) text.erase(0, text.size() - most);
}

// Until it ends; a child of its own that keeps its output open is not waited for. False if its time
// is over first.
bool follow(const Tool& tool, const Pipe& output, const Pipe& errors, const sys::Fd& process,
            ToolEnd& end) {
  const auto deadline = Clock::now() + tool.limit;
  pollfd polls[] = {{output.read_end.get(), POLLIN, 0},
                    {errors.read_end.get(), POLLIN, 0},
                    {process.get(), POLLIN, 0}};
  for (;;) {
    if (Clock::now() >= deadline) return false;
    if (tool.while_waiting) tool.while_waiting();
    if (::poll(polls, std::size(polls), tick_milliseconds) <= 0) continue;
    const bool has_ended = polls[2].revents != 0;
    if (!read_all(output.read_end, end.out, tool.most_output)) polls[0].fd = -1;
    if (!read_all(errors.read_end, end.err, 4 * most_errors)) polls[1].fd = -1;
    end.out.resize(std::min(end.out.size(), tool.most_output));
    keep_end(end.err, most_errors);
    if (has_ended) return true;
  }
}

std::unexpected<StoreProblem> cannot_run(const Tool& tool, int error) {
  return refuse(format("{} cannot be run: {}", quoted(tool.words.front()), std::strerror(error)),
                "check that it is installed and can be run");
}

}  // namespace

Stored<ToolEnd> run_tool(const Tool& tool) {
  Pipe output;
  Pipe errors;
  Pipe failure;
  if (!output.open() || !errors.open() || !failure.open()) return cannot_run(tool, errno);
  const sys::Fd input = open_input(tool.input);
  if (input.get() < 0) return cannot_run(tool, errno);
  const std::vector<char*> words = sys::exec_words(tool.words);
  const std::vector<char*> environment = sys::exec_words(tool.environment);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    run_child({words.data(), environment.data(), tool.directory.c_str(), input.get(),
               output.write_end.get(), errors.write_end.get(), failure.write_end.get(), self});
  }
  if (pid < 0) return cannot_run(tool, errno);
  Running running(pid);
  const sys::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) return cannot_run(tool, errno);
  for (Pipe* pipe : {&output, &errors, &failure}) pipe->write_end = sys::Fd();
  (void)::fcntl(failure.read_end.get(), F_SETFL, 0);  // wait for the exec
  int error = 0;
  if (::read(failure.read_end.get(), &error, sizeof(error)) == sizeof(error)) {
    return cannot_run(tool, error);
  }
  ToolEnd end;
  if (!follow(tool, output, errors, process, end)) {
    return refuse(
        format("{} did not end within {} seconds", quoted(tool.words.front()), tool.limit.count()),
        "is the registry reachable from here?");
  }
  const int status = running.end();
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace capgate::clients
