#include "seal/reused_origin.h"

#include "secrets/secret.h"

namespace capgate::seal {

using egress::failed;
using egress::never;
using egress::taken_away;

ReusedOrigin::~ReusedOrigin() { secrets::wipe(asked_); }

void ReusedOrigin::settle(State state) {
  secrets::wipe(asked_);
  asked_.clear();
  state_ = state;
}

void ReusedOrigin::cancel() {
  is_over_ = true;
  stream_->cancel();
  changed_.notify();
}

void ReusedOrigin::leave() {
  is_over_ = true;
  changed_.notify();
}

// Nobody is in a call of the old stream when another one is asked for. What was asked is asked
// again.
Async<bool> ReusedOrigin::replace() {
  state_ = State::replacing;
  stream_->cancel();
  Stream* another = co_await another_();
  if (is_over_) co_return false;
  if (another == nullptr) {
    settle(State::broken);
    changed_.notify();
    co_return false;
  }
  stream_ = another;
  // If that fails, reading does as well.
  if (!asked_.empty()) (void)co_await stream_->write(asked_, never);
  if (is_over_) co_return false;
  settle(State::settled);
  changed_.notify();
  co_return true;
}

Async<ssize_t> ReusedOrigin::read(std::span<char> into, Time deadline) {
  for (;;) {
    if (is_over_) co_return taken_away;
    if (state_ == State::settled) co_return co_await stream_->read(into, deadline);
    if (state_ == State::broken) co_return failed;
    if (state_ == State::replacing || is_dead_) {
      co_await changed_;
      continue;
    }
    const ssize_t size = co_await stream_->read(into, deadline);
    if (is_over_) co_return taken_away;
    if (state_ == State::replacing) continue;
    if (size == taken_away) co_return taken_away;
    if (state_ == State::asked && size > 0) {
      settle(State::settled);
      co_return size;
    }
    is_dead_ = true;
    if (is_writing_) {
      stream_->cancel();  // write() goes on, and replaces it
    } else if (state_ == State::asked) {
      (void)co_await replace();
    }
  }
}

Async<ssize_t> ReusedOrigin::write(std::string_view bytes, Time deadline) {
  if (is_over_) co_return taken_away;
  const bool may_ask = repeats_ == Repeats::freely && !is_dead_;
  // What has come before the request is not the answer to it.
  if (state_ == State::unused && may_ask && is_silent_()) {
    asked_ = bytes;
    state_ = State::asked;
    is_writing_ = true;
    const ssize_t size = co_await stream_->write(bytes, deadline);
    is_writing_ = false;
    if (is_over_) co_return taken_away;
    const bool is_sent = size > 0 && !is_dead_;
    const bool is_away = size == taken_away && !is_dead_;
    if (is_sent || is_away || state_ == State::settled) co_return size;
    if (!co_await replace()) co_return is_over_ ? taken_away : failed;
    co_return static_cast<ssize_t>(bytes.size());
  }
  if (state_ == State::unused && !co_await replace()) co_return is_over_ ? taken_away : failed;
  co_return co_await stream_->write(bytes, deadline);
}

}  // namespace capgate::seal
