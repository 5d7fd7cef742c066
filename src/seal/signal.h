// Lets one coroutine wait until another one has something for it.
//
//   co_await signal;      // at once if notify() was called since the last wait
//   signal.notify();      // the waiting coroutine runs within this call
//
// One waits at a time; what is told while nobody waits is kept, once.
#pragma once

#include <coroutine>
#include <utility>

namespace capgate::seal {

class Signal {
 public:
  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  Signal(Signal&&) = delete;
  Signal& operator=(Signal&&) = delete;
  ~Signal() = default;

  void notify() {
    if (waiting_) {
      std::exchange(waiting_, nullptr).resume();
    } else {
      is_told_ = true;
    }
  }

  [[nodiscard]] bool await_ready() { return std::exchange(is_told_, false); }
  void await_suspend(std::coroutine_handle<> coroutine) { waiting_ = coroutine; }
  void await_resume() const {}

 private:
  std::coroutine_handle<> waiting_;
  bool is_told_ = false;
};

}  // namespace capgate::seal
