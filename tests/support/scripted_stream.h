// A seal::Stream without a socket: what a test feeds is read, what is written is kept.
//
//   ScriptedStream stream;
//   relay(stream);                  // a coroutine; it waits in read()
//   stream.feed("bytes");           // it runs within this call
//   stream.take()                   // what it has written
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "egress/io.h"
#include "seal/signal.h"
#include "seal/stream.h"

namespace capgate::support {

class ScriptedStream final : public seal::Stream {
 public:
  void feed(std::string_view bytes) {
    input_ += bytes;
    readable_.notify();
  }
  void end(ssize_t how = egress::ended) {
    end_ = how;
    has_ended_ = true;
    readable_.notify();
    writable_.notify();
  }
  // Nobody reads what is written, until `stall(false)`.
  void stall(bool is_stalled) {
    is_stalled_ = is_stalled;
    if (!is_stalled) writable_.notify();
  }
  [[nodiscard]] std::string take() { return std::exchange(output_, {}); }

  seal::Async<ssize_t> read(std::span<char> into, seal::Time deadline) override {
    read_deadline = deadline;
    ++readers;
    while (input_.empty() && !has_ended_ && !is_cancelled_) co_await readable_;
    --readers;
    if (is_cancelled_) co_return egress::taken_away;
    if (input_.empty()) co_return end_;
    const std::size_t size = std::min(input_.size(), into.size());
    std::copy_n(input_.begin(), size, into.begin());
    input_.erase(0, size);
    co_return static_cast<ssize_t>(size);
  }
  seal::Async<ssize_t> write(std::string_view bytes, seal::Time /*deadline*/) override {
    ++writers;
    most_writers = std::max(most_writers, writers);
    while (is_stalled_ && !has_ended_ && !is_cancelled_) co_await writable_;
    --writers;
    if (is_cancelled_) co_return egress::taken_away;
    if (has_ended_ && end_ != egress::ended) co_return egress::failed;
    output_ += bytes;
    largest_write = std::max(largest_write, bytes.size());
    co_return static_cast<ssize_t>(bytes.size());
  }
  seal::Async<ssize_t> finish(seal::Time /*deadline*/) override {
    is_finished = true;
    co_return egress::ended;
  }
  void cancel() override {
    is_cancelled_ = true;
    readable_.notify();
    writable_.notify();
  }

  seal::Time read_deadline;
  int readers = 0;
  int writers = 0;
  int most_writers = 0;
  std::size_t largest_write = 0;
  bool is_finished = false;

 private:
  std::string input_;
  std::string output_;
  ssize_t end_ = egress::ended;
  bool has_ended_ = false;
  bool is_stalled_ = false;
  bool is_cancelled_ = false;
  seal::Signal readable_;
  seal::Signal writable_;
};

}  // namespace capgate::support
