#include "sandbox/stderr_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/format.h"

namespace capgate::sandbox {
namespace {

// A burst passes whole; a server that goes on like that is noise.
constexpr std::uint64_t burst = 1U << 20U;
constexpr std::uint64_t bytes_a_second = 64U << 10U;
// What a pipe takes without blocking once it says that it is writable.
constexpr std::size_t piece = 4096;
constexpr int patience_at_the_end = 500;
// A flood is thrown away in gulps: all that the pipe holds, twenty times a second.
constexpr std::chrono::milliseconds pause{50};
constexpr std::size_t gulp = 65536;
constexpr std::size_t most_gulps = 16;

}  // namespace

bool write_if_read(int fd, std::string_view text) {
  while (!text.empty()) {
    pollfd poll{fd, POLLOUT, 0};
    if (::poll(&poll, 1, patience_at_the_end) <= 0) return false;
    const ssize_t size = ::write(fd, text.data(), std::min(text.size(), piece));
    if (size < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (size > 0) text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

StderrCopy::StderrCopy(int from)
    : from_(from),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      allowance_(burst),
      refilled_(std::chrono::steady_clock::now()) {
  ::fcntl(from_, F_SETFL, O_NONBLOCK);
}

bool StderrCopy::is_paused() const {
  return open_ && std::chrono::steady_clock::now() < paused_until_;
}

std::optional<std::chrono::steady_clock::time_point> StderrCopy::wakes() const {
  if (!is_paused()) return std::nullopt;
  return paused_until_;
}

pollfd StderrCopy::wanted() const {
  if (!pending_.empty()) return {STDERR_FILENO, POLLOUT, 0};
  return {open_ && !is_paused() ? from_ : -1, POLLIN, 0};
}

void StderrCopy::step() {
  if (pending_.empty())
    read_some();
  else
    write_some();
}

void StderrCopy::read_some() {
  char buffer[piece];
  const ssize_t size = ::read(from_, buffer, sizeof(buffer));
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    open_ = false;
    if (is_terminal_) text_.end(pending_);
    return;
  }
  refill();
  const auto read = static_cast<std::uint64_t>(size);
  if (read > allowance_) {
    dropped_ += read;
    discard();
    return;
  }
  allowance_ -= read;
  tell_dropped();
  pass({buffer, static_cast<std::size_t>(size)});
}

void StderrCopy::pass(std::string_view words) {
  if (is_terminal_) {
    text_.add(words, pending_);
  } else {
    pending_ += words;
  }
}

void StderrCopy::discard() {
  paused_until_ = std::chrono::steady_clock::now() + pause;
  static char waste[gulp];
  for (std::size_t i = 0; i < most_gulps; ++i) {
    const ssize_t size = ::read(from_, waste, sizeof(waste));
    if (size <= 0) return;  // its end is seen by the next read
    dropped_ += static_cast<std::uint64_t>(size);
  }
}

void StderrCopy::write_some() {
  const ssize_t size = ::write(STDERR_FILENO, pending_.data(), std::min(pending_.size(), piece));
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size < 0) {
    pending_.clear();  // nobody reads it any more
    return;
  }
  pending_.erase(0, static_cast<std::size_t>(size));
}

void StderrCopy::refill() {
  const auto now = std::chrono::steady_clock::now();
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - refilled_);
  refilled_ = now;
  allowance_ = std::min(
      burst, allowance_ + static_cast<std::uint64_t>(passed.count()) * bytes_a_second / 1000);
}

void StderrCopy::tell_dropped() {
  if (dropped_ == 0) return;
  pending_ += format("\ncapgate: {} bytes of the server's stderr were left out\n", dropped_);
  dropped_ = 0;
}

void StderrCopy::drain() {
  while (open_ || !pending_.empty()) {
    paused_until_ = {};  // nobody is left who could be made to wait
    pollfd poll = wanted();
    if (::poll(&poll, 1, patience_at_the_end) <= 0) break;
    step();
    if (!open_ && pending_.empty()) tell_dropped();
  }
}

}  // namespace capgate::sandbox
