#include "secrets/command.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "secrets/read.h"
#include "sys/child.h"

namespace capgate::secrets {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* default_path = "/usr/local/bin:/usr/bin:/bin";

// ---- in the child: only async-signal-safe calls -------------------------------------------------

struct Child {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int output;
  int errors;  // takes the errno of what fails; closed by the exec
  int terminal;
  pid_t parent;
};

bool prepare(const Child& child) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || ::setpgid(0, 0) != 0) return false;
  if (::getppid() != child.parent) ::_exit(125);
  // All signals are blocked: it is not stopped for doing this from the background.
  if (child.terminal >= 0) (void)::tcsetpgrp(child.terminal, ::getpid());
  sys::default_signals();
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(child.output, STDOUT_FILENO) < 0) {
    return false;
  }
  constexpr unsigned first = STDERR_FILENO + 1;
  if (::syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return false;
  return sys::unblock_signals();
}

[[noreturn]] void run_child(const Child& child) {
  if (prepare(child)) ::execve(child.program, child.arguments, child.environment);
  const int error = errno;
  (void)!::write(child.errors, &error, sizeof(error));
  ::_exit(125);
}

// ---- in the parent ------------------------------------------------------------------------------

// While one of these lives no signal reaches this process, and a child that ends waits for us.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    (void)::sigprocmask(SIG_SETMASK, &all, &mask_);
    struct sigaction by_default{};
    by_default.sa_handler = SIG_DFL;
    (void)::sigaction(SIGCHLD, &by_default, &child_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  SignalsHeld(SignalsHeld&&) = delete;
  SignalsHeld& operator=(SignalsHeld&&) = delete;
  ~SignalsHeld() {
    (void)::sigaction(SIGCHLD, &child_, nullptr);
    (void)::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  // Interrupts and the end of the caller are still answered while a program runs.
  void let_through() const { (void)::sigprocmask(SIG_SETMASK, &mask_, nullptr); }
  void hold() const {
    sigset_t all;
    ::sigfillset(&all);
    (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  }

 private:
  sigset_t mask_{};
  struct sigaction child_{};
};

// The terminal, if this process is in its foreground.
sys::Fd own_terminal() {
  sys::Fd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (terminal.get() < 0 || ::tcgetpgrp(terminal.get()) != ::getpgrp()) return {};
  return terminal;
}

class Running {
 public:
  Running(pid_t pid, sys::Fd terminal) : pid_(pid), terminal_(std::move(terminal)) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  Running(Running&&) = delete;
  Running& operator=(Running&&) = delete;
  ~Running() { (void)end(); }

  // Kills what is left of its group, and reaps it: its wait status.
  int end() {
    if (pid_ < 0) return status_;
    (void)::kill(-pid_, SIGKILL);
    (void)::kill(pid_, SIGKILL);  // before it has a group
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (terminal_.get() >= 0) (void)::tcsetpgrp(terminal_.get(), ::getpgrp());
    return status_;
  }

 private:
  pid_t pid_;
  sys::Fd terminal_;
  int status_ = 0;
};

struct Pipes {
  sys::Fd output, output_inner, errors, errors_inner;
};

std::expected<Pipes, int> make_pipes() {
  int output[2];
  int errors[2];
  if (::pipe2(output, O_CLOEXEC) != 0) return std::unexpected(errno);
  Pipes out{.output = sys::Fd(output[0]), .output_inner = sys::Fd(output[1])};
  if (::pipe2(errors, O_CLOEXEC) != 0) return std::unexpected(errno);
  out.errors = sys::Fd(errors[0]);
  out.errors_inner = sys::Fd(errors[1]);
  if (::fcntl(out.output.get(), F_SETFL, O_NONBLOCK) != 0) return std::unexpected(errno);
  return out;
}

enum class Ending : unsigned char { ended, too_late, too_much, cancelled, failed };

// Until the program has ended; a child of its own that keeps the pipe open is not waited for.
Ending read_output(const Pipes& pipes, const sys::Fd& process, const Context& context,
                   SecretReader& reader) {
  const auto deadline = Clock::now() + context.command_limit;
  pollfd polls[] = {
      {pipes.output.get(), POLLIN, 0}, {process.get(), POLLIN, 0}, {context.cancel, 0, 0}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Ending::too_late;
    const int ready = ::poll(polls, std::size(polls), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return Ending::failed;
    if (ready <= 0) continue;
    if (polls[2].revents != 0) return Ending::cancelled;
    const bool has_ended = polls[1].revents != 0;
    for (std::expected<bool, int> more = true; more && *more;) {
      more = reader.read(pipes.output);
      if (!more && more.error() == EFBIG) return Ending::too_much;
      if (!more && more.error() != EAGAIN) return Ending::failed;
      if (more && !*more) polls[0].fd = -1;  // closed, but it may still run
    }
    if (has_ended) return Ending::ended;
  }
}

Problem problem_of(Ending ending, std::string_view shown, const Context& context,
                   std::size_t most) {
  switch (ending) {
    case Ending::too_late:
      return {
          .message = format("{} did not end within {} seconds", shown,
                            std::chrono::ceil<std::chrono::seconds>(context.command_limit).count()),
          .help = "run it by hand: it must print the secret without being asked for long"};
    case Ending::too_much:
      return {.message = format("{} prints more than {} bytes", shown, most),
              .help = "it must print the secret and nothing else"};
    case Ending::cancelled:
      return {.message = format("{} was stopped: nobody waits for it any more", shown), .help = ""};
    case Ending::ended:
    case Ending::failed:
      return {.message = format("the output of {} cannot be read", shown),
              .help = "see capgate doctor"};
  }
  return {};
}

std::expected<void, Problem> check_status(int status, std::string_view shown) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string how = WIFEXITED(status) ? format("exit status {}", WEXITSTATUS(status))
                                            : format("signal {}", WTERMSIG(status));
  return std::unexpected(
      Problem{.message = format("{} failed: {}", shown, how),
              .help = "what it wrote to stderr is above; run it by hand as the same user"});
}

std::unexpected<Problem> cannot_run(std::string_view shown, int error) {
  return std::unexpected(
      Problem{.message = format("{} cannot be run: {}", shown, std::strerror(error)),
              .help = "write the path of a program that you can run"});
}

}  // namespace

const char* find_variable(std::string_view name, const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return entry.c_str() + name.size() + 1;
    }
  }
  return nullptr;
}

std::string find_in_path(const std::string& name, const std::vector<std::string>& environment) {
  if (name.contains('/')) return name;
  const char* const path = find_variable("PATH", environment);
  for (const std::string_view directory : EachPart(path == nullptr ? default_path : path, ':')) {
    // An empty or relative part would run what lies in the current directory.
    if (!directory.starts_with('/')) continue;
    std::string file = format("{}/{}", directory, name);
    struct stat info{};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return "";
}

std::expected<Secret, Problem> run_command(const std::vector<std::string>& words,
                                           const Context& context, std::size_t most) {
  const std::string shown = quoted(words.front());
  const std::string program = find_in_path(words.front(), context.environment);
  if (program.empty()) return cannot_run(shown, ENOENT);
  auto reader = SecretReader::make(most);
  auto pipes = make_pipes();
  if (!reader || !pipes) return cannot_run(shown, reader ? pipes.error() : reader.error());
  const std::vector<char*> arguments = sys::exec_words(words);
  const std::vector<char*> environment = sys::exec_words(context.environment);

  sys::Fd terminal = own_terminal();
  const SignalsHeld held;
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  const pid_t self = ::getpid();
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
  if (pid == 0) {
    run_child({program.c_str(), arguments.data(), environment.data(), pipes->output_inner.get(),
               pipes->errors_inner.get(), terminal.get(), self});
  }
  if (pid < 0) return cannot_run(shown, errno);
  const sys::Fd process(pidfd);
  Running running(pid, std::move(terminal));
  pipes->output_inner = sys::Fd();
  pipes->errors_inner = sys::Fd();
  int error = 0;
  if (::read(pipes->errors.get(), &error, sizeof(error)) == sizeof(error)) {
    return cannot_run(shown, error);
  }
  held.let_through();
  const Ending ending = read_output(*pipes, process, context, *reader);
  held.hold();
  const int status = running.end();
  if (ending != Ending::ended) {
    return std::unexpected(problem_of(ending, shown, context, most));
  }
  if (auto checked = check_status(status, shown); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  auto out = std::move(*reader).take();
  if (!out) return cannot_run(shown, out.error());
  return *std::move(out);
}

}  // namespace capgate::secrets
