// Sides of a terminated connection without TLS: sockets of a loop, and plain memory.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <coroutine>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "egress/io.h"
#include "seal/stream.h"

namespace capgate::support {

class PlainStream final : public seal::Stream {
 public:
  PlainStream(egress::Loop& loop, egress::SocketPtr socket)
      : loop_(loop), socket_(std::move(socket)) {}

  egress::Async<ssize_t> read(std::span<char> into, egress::Time deadline) override {
    return egress::read_some(loop_, *socket_, into, deadline);
  }
  egress::Async<ssize_t> write(std::string_view bytes, egress::Time deadline) override {
    return egress::write_all(loop_, *socket_, bytes, deadline);
  }
  egress::Async<ssize_t> finish(egress::Time /*deadline*/) override {
    co_return ::shutdown(socket_->fd(), SHUT_WR) == 0 ? 0 : egress::failed;
  }
  void cancel() override { loop_.cancel(*socket_); }

 private:
  egress::Loop& loop_;
  egress::SocketPtr socket_;
};

// Reads one segment after the other, and waits where there is none until it is fed. Takes
// everything that is written, at once.
class MemoryStream final : public seal::Stream {
 public:
  void feed(std::string segment) {
    if (!segment.empty()) segments_.push_back(std::move(segment));
    wake();
  }
  void end() {
    has_ended_ = true;
    wake();
  }
  [[nodiscard]] const std::string& written() const { return written_; }
  [[nodiscard]] bool is_finished() const { return is_finished_; }
  [[nodiscard]] bool is_waiting() const { return reader_ != nullptr; }

  egress::Async<ssize_t> read(std::span<char> into, egress::Time /*deadline*/) override {
    while (segments_.empty() && !has_ended_) {
      if (co_await Waiting{*this}) co_return egress::taken_away;
    }
    if (segments_.empty()) co_return egress::ended;
    std::string& first = segments_.front();
    const std::size_t size = std::min(into.size(), first.size());
    std::copy_n(first.begin(), size, into.begin());
    first.erase(0, size);
    if (first.empty()) segments_.pop_front();
    co_return static_cast<ssize_t>(size);
  }
  egress::Async<ssize_t> write(std::string_view bytes, egress::Time /*deadline*/) override {
    written_ += bytes;
    co_return static_cast<ssize_t>(bytes.size());
  }
  egress::Async<ssize_t> finish(egress::Time /*deadline*/) override {
    is_finished_ = true;
    co_return 0;
  }
  void cancel() override {
    if (reader_ == nullptr) return;
    is_cancelled_ = true;
    wake();
  }

 private:
  struct Waiting {
    MemoryStream& stream;
    static bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> reader) const { stream.reader_ = reader; }
    // True: cancelled.
    [[nodiscard]] bool await_resume() const { return std::exchange(stream.is_cancelled_, false); }
  };
  void wake() {
    if (const auto reader = std::exchange(reader_, nullptr)) reader.resume();
  }

  std::deque<std::string> segments_;
  std::string written_;
  std::coroutine_handle<> reader_;
  bool has_ended_ = false;
  bool is_finished_ = false;
  bool is_cancelled_ = false;
};

}  // namespace capgate::support
