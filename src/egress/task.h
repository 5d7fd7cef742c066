// Coroutines of the broker: one connection reads as one function, from its first byte to its end.
//
//   Async<bool> say_hello(Loop& loop, Socket& socket);     // started when it is awaited
//   Task serve(Loop& loop, SocketPtr socket) {             // runs on its own, frees itself
//     if (!co_await say_hello(loop, *socket)) co_return;
//   }
//
// One thread, no exceptions: whoever resumes a coroutine gets control back when it waits again.
#pragma once

#include <coroutine>
#include <cstdlib>
#include <optional>
#include <utility>

namespace capgate::egress {

struct Task {
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    static Task get_return_object() { return {}; }
    static std::suspend_never initial_suspend() noexcept { return {}; }
    static std::suspend_never final_suspend() noexcept { return {}; }
    static void return_void() {}
    static void unhandled_exception() { std::abort(); }
  };
};

template <typename T>
class [[nodiscard]] Async {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    std::coroutine_handle<> awaiting;
    std::optional<T> value;

    // The awaiting coroutine goes on where this one ends.
    struct Final {
      static bool await_ready() noexcept { return false; }
      static std::coroutine_handle<> await_suspend(
          std::coroutine_handle<promise_type> self) noexcept {
        return self.promise().awaiting;
      }
      static void await_resume() noexcept {}
    };
    Async get_return_object() {
      return Async(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    static std::suspend_always initial_suspend() noexcept { return {}; }
    static Final final_suspend() noexcept { return {}; }
    void return_value(T result) { value.emplace(std::move(result)); }
    static void unhandled_exception() { std::abort(); }
  };

  Async(const Async&) = delete;
  Async& operator=(const Async&) = delete;
  Async(Async&& other) noexcept : self_(std::exchange(other.self_, nullptr)) {}
  Async& operator=(Async&&) = delete;
  ~Async() {
    if (self_) self_.destroy();
  }

  static bool await_ready() noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    self_.promise().awaiting = awaiting;
    return self_;
  }
  T await_resume() { return *std::move(self_.promise().value); }

 private:
  explicit Async(std::coroutine_handle<promise_type> self) : self_(self) {}
  std::coroutine_handle<promise_type> self_;
};

}  // namespace capgate::egress
