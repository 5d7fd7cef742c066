#include "store/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/format.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::store {
namespace {

using secrets::Secret;

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
// The kernel keeps no more of a line, and drops the rest without a word.
constexpr std::size_t longest_line = 4095;

volatile std::sig_atomic_t caught = 0;
void catch_signal(int signal) { caught = signal; }

std::unexpected<Problem> refuse(std::string_view why) {
  return unavailable(format("the terminal: {}", why), "try it again in another terminal");
}

// While it lives: nothing that is typed is shown, a signal ends `read_line` instead of the process,
// which would leave the terminal without echo, and ^Z does not stop it.
class Silence {
 public:
  explicit Silence(int terminal) : terminal_(terminal) {
    sigset_t held;
    ::sigemptyset(&held);
    ::sigaddset(&held, SIGTSTP);
    for (const int signal : ending_signals) ::sigaddset(&held, signal);
    ::sigprocmask(SIG_BLOCK, &held, &old_mask_);
    struct sigaction action{};
    action.sa_handler = catch_signal;
    for (std::size_t i = 0; i < std::size(ending_signals); ++i) {
      ::sigaction(ending_signals[i], &action, &old_actions_[i]);
    }
    is_silent_ = ::tcgetattr(terminal_, &old_) == 0 && be_silent();
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  Silence(Silence&&) = delete;
  Silence& operator=(Silence&&) = delete;
  ~Silence() {
    if (is_silent_) (void)::tcsetattr(terminal_, TCSAFLUSH, &old_);
    for (std::size_t i = 0; i < std::size(ending_signals); ++i) {
      ::sigaction(ending_signals[i], &old_actions_[i], nullptr);
    }
    // The terminal is as it was: the signal may do now what it does.
    if (caught != 0) ::raise(caught);
    ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  }
  [[nodiscard]] bool is_silent() const { return is_silent_; }

  // Until there is something to read; a signal comes through here alone.
  [[nodiscard]] bool wait() const {
    sigset_t open = old_mask_;
    ::sigaddset(&open, SIGTSTP);
    pollfd source{.fd = terminal_, .events = POLLIN, .revents = 0};
    while (caught == 0) {
      if (::ppoll(&source, 1, nullptr, &open) > 0) return true;
      if (errno != EINTR) return false;
    }
    return false;
  }

 private:
  bool be_silent() {
    termios silent = old_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL);
    silent.c_lflag |= ICANON | ISIG;
    return ::tcsetattr(terminal_, TCSAFLUSH, &silent) == 0;
  }

  int terminal_;
  bool is_silent_ = false;
  termios old_{};
  sigset_t old_mask_{};
  struct sigaction old_actions_[std::size(ending_signals)]{};
};

Outcome<Secret> read_line(int terminal, const Silence& silence) {
  auto line = Secret::room(longest_line + 1);
  if (!line) return refuse("no memory can be locked for a secret");
  std::size_t size = 0;
  for (;;) {
    if (!silence.wait()) return refuse("interrupted");
    const ssize_t got = ::read(terminal, line->bytes().data() + size, line->bytes().size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(std::strerror(errno));
    size += static_cast<std::size_t>(got);
    const bool is_ended = size > 0 && line->bytes()[size - 1] == '\n';
    if (size >= longest_line) return refuse("the line is too long; give the value through a pipe");
    if (got == 0 && size == 0) return refuse("nothing was typed");
    if (!is_ended && got != 0) continue;
    line->shrink(is_ended ? size - 1 : size);
    return *std::move(line);
  }
}

}  // namespace

Outcome<Secret> ask(std::string_view prompt) {
  const sys::Fd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (terminal.get() < 0) {
    return unavailable(
        format("{} cannot be asked: there is no terminal", prompt),
        "a value comes through a pipe; for a key without a terminal, as MCP clients start servers, "
        "run in a terminal: capgate secret rotate --key file:PATH (or keyring:NAME)");
  }
  const Silence silence(terminal.get());
  if (!silence.is_silent()) return refuse("its echo cannot be turned off");
  if (!sys::write_all(terminal.get(), format("{}: ", prompt))) return refuse(std::strerror(errno));
  auto line = read_line(terminal.get(), silence);
  if (!sys::write_all(terminal.get(), "\n")) return refuse(std::strerror(errno));
  return line;
}

}  // namespace capgate::store
