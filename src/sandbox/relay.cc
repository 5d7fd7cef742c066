#include "sandbox/relay.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace capgate::sandbox {
namespace {

bool is_socket(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

bool is_pipe(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

}  // namespace

std::expected<Relay, int> Relay::make(int outer, Way way) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(errno);
  Relay relay;
  relay.way_is_known_ = true;
  relay.way_ = way;
  relay.outer_ = outer;
  relay.pipe_ = sys::Fd(ends[way == Way::to_server ? 1 : 0]);
  relay.inner_ = sys::Fd(ends[way == Way::to_server ? 0 : 1]);
  return relay;
}

pollfd Relay::wanted() const {
  if (!is_used() || is_done_) return {-1, 0, 0};
  return is_full_ ? pollfd{to(), POLLOUT, 0} : pollfd{from(), POLLIN, 0};
}

// Called when one of the two is ready: nothing moves now only if the other one is not.
void Relay::step() {
  constexpr std::size_t most = 1U << 20U;
  const ssize_t size =
      ::splice(from(), nullptr, to(), nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (size > 0) {
    is_full_ = false;
  } else if (size < 0 && errno == EAGAIN) {
    is_full_ = !is_full_;
  } else if (size == 0 || errno != EINTR) {
    finish();
  }
}

// The reader sees the end, the writer that nobody reads.
void Relay::finish() {
  is_done_ = true;
  pipe_ = sys::Fd();
  const sys::Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (nothing.get() >= 0) (void)::dup2(nothing.get(), outer_);
}

bool Relay::has_unread() const {
  int count = 0;
  return pipe_.get() >= 0 && ::ioctl(pipe_.get(), FIONREAD, &count) == 0 && count > 0;
}

std::expected<Stdio, int> make_stdio(bool input_ends_it) {
  Stdio stdio;
  if (is_socket(STDIN_FILENO) || (input_ends_it && is_pipe(STDIN_FILENO))) {
    auto made = Relay::make(STDIN_FILENO, Relay::Way::to_server);
    if (!made) return std::unexpected(made.error());
    stdio.input = *std::move(made);
  }
  if (is_socket(STDOUT_FILENO)) {
    auto made = Relay::make(STDOUT_FILENO, Relay::Way::from_server);
    if (!made) return std::unexpected(made.error());
    stdio.output = *std::move(made);
  }
  return stdio;
}

}  // namespace capgate::sandbox
