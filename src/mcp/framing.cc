#include "mcp/framing.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

namespace capgate::mcp {
namespace {

constexpr std::size_t kept_of_errors = 8192;
constexpr std::size_t piece = 65536;

bool make_non_blocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

// A write to a server that has ended is an error here, not a signal that ends this program.
ssize_t write_without_signal(int fd, std::string_view text) {
  sigset_t broken_pipe;
  sigset_t before;
  sigset_t pending;
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::sigpending(&pending);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  const ssize_t written = ::write(fd, text.data(), text.size());
  const int error = errno;
  if (written < 0 && error == EPIPE && ::sigismember(&pending, SIGPIPE) == 0) {
    const timespec at_once{};
    (void)::sigtimedwait(&broken_pipe, nullptr, &at_once);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace

void ErrorTail::step() {
  char buffer[4096];
  const ssize_t got = ::read(file_.get(), buffer, sizeof(buffer));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    file_ = sys::Fd();
    return;
  }
  text_.append(buffer, static_cast<std::size_t>(got));
  if (text_.size() > kept_of_errors) text_.erase(0, text_.size() - kept_of_errors);
}

bool Framing::prepare() { return make_non_blocking(pipes_.to) && make_non_blocking(pipes_.from); }

// Until `fd` is ready. The server's stderr is read meanwhile.
std::expected<void, Stop> Framing::wait(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    if (Clock::now() >= deadline) return std::unexpected(Stop::late);
    pollfd polls[] = {{fd, events, 0},
                      {pipes_.cancel, POLLIN, 0},
                      {pipes_.errors == nullptr ? -1 : pipes_.errors->fd(), POLLIN, 0}};
    const int ready = ::poll(polls, std::size(polls), milliseconds_until(deadline));
    if (ready < 0 && errno != EINTR) return std::unexpected(Stop::failed);
    if (ready <= 0) continue;
    if (polls[1].revents != 0) return std::unexpected(Stop::cancelled);
    if (polls[2].revents != 0) pipes_.errors->step();
    if (polls[0].revents != 0) return {};
  }
}

std::expected<void, Stop> Framing::send(std::string_view messages, Clock::time_point deadline) {
  while (!messages.empty()) {
    if (const auto ready = wait(pipes_.to, POLLOUT, deadline); !ready) return ready;
    const ssize_t written = write_without_signal(pipes_.to, messages);
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (written < 0) return std::unexpected(errno == EPIPE ? Stop::closed : Stop::failed);
    messages.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::expected<std::string_view, Stop> Framing::next(Clock::time_point deadline) {
  for (;;) {
    const std::size_t end = held_.find('\n', searched_);
    if (end != std::string::npos) {
      if (end - at_ > limits_.line) return std::unexpected(Stop::long_line);
      const std::string_view line = std::string_view(held_).substr(at_, end - at_);
      at_ = searched_ = end + 1;
      return line;
    }
    searched_ = held_.size();
    if (held_.size() - at_ > limits_.line) return std::unexpected(Stop::long_line);
    if (const auto filled = fill(deadline); !filled) return std::unexpected(filled.error());
  }
}

std::expected<void, Stop> Framing::fill(Clock::time_point deadline) {
  if (received_ >= limits_.bytes) return std::unexpected(Stop::too_much);
  held_.erase(0, at_);
  searched_ -= at_;
  at_ = 0;
  for (;;) {
    if (const auto ready = wait(pipes_.from, POLLIN, deadline); !ready) return ready;
    const std::size_t before = held_.size();
    held_.resize(before + piece);
    const ssize_t got = ::read(pipes_.from, held_.data() + before, piece);
    const int error = errno;
    held_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) {
      received_ += static_cast<std::size_t>(got);
      return {};
    }
    if (got == 0 || error == ECONNRESET) return std::unexpected(Stop::closed);
    if (error != EAGAIN && error != EINTR) return std::unexpected(Stop::failed);
  }
}

}  // namespace capgate::mcp
