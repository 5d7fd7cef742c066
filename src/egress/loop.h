// The broker's only wait: one thread, one epoll, deadlines.
//
//   Loop loop;
//   SocketPtr client = loop.adopt(std::move(fd));
//   if (co_await loop.readable(*client, loop.now() + 15s) != Woken::ready) co_return;
//   ...
//   loop.run();      // until stop()
//
// A descriptor is registered once, edge-triggered, for its whole life. Its Socket remembers what
// the kernel said last, so a coroutine that does not have to wait makes no system call. Sockets
// that end are closed at once and freed after the round, since the same round may hold an event of
// theirs.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "sys/fd.h"

namespace capgate::egress {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
inline constexpr Time never = Time::max();
inline constexpr std::uint32_t all_events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

enum class Woken : unsigned char {
  ready,
  late,       // the deadline has passed
  cancelled,  // the socket was taken away, or the broker ends
};

class Loop;
class Socket;
class Wait;

// Who is told of events that no coroutine waits for.
class Owner {
 public:
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  Owner(Owner&&) = delete;
  Owner& operator=(Owner&&) = delete;
  virtual ~Owner() = default;
  virtual void on_event(Socket& socket) = 0;
};

class Socket {
 public:
  [[nodiscard]] int fd() const { return fd_.get(); }

  // What the kernel said last. Whoever meets EAGAIN takes it back.
  bool is_readable = false;
  bool is_writable = false;
  bool has_ended = false;   // the peer will send nothing more than what is there
  bool has_failed = false;  // EPOLLERR or EPOLLHUP

  Owner* owner = nullptr;

 private:
  friend class Loop;
  friend class Wait;
  explicit Socket(sys::Fd fd) : fd_(std::move(fd)) {}

  sys::Fd fd_;
  Wait* reader_ = nullptr;
  Wait* writer_ = nullptr;
};

// One suspended coroutine: for a socket, for any of several, or for a time. Lives in its frame.
class [[nodiscard]] Wait {
 public:
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  Wait(Wait&&) = delete;
  Wait& operator=(Wait&&) = delete;
  ~Wait() = default;

  [[nodiscard]] bool await_ready() const;
  void await_suspend(std::coroutine_handle<> coroutine);
  [[nodiscard]] Woken await_resume() const { return woken_; }

 private:
  friend class Loop;
  enum class For : unsigned char { reading, writing, time };
  Wait(Loop& loop, Socket& socket, For what, Time deadline)
      : loop_(loop), single_(&socket), what_(what), deadline_(deadline) {}
  Wait(Loop& loop, std::span<Socket* const> sockets, Time deadline)
      : loop_(loop), several_(sockets), what_(For::writing), deadline_(deadline) {}
  Wait(Loop& loop, Time deadline) : loop_(loop), what_(For::time), deadline_(deadline) {}

  [[nodiscard]] std::span<Socket* const> sockets() const {
    return single_ != nullptr ? std::span<Socket* const>(&single_, 1) : several_;
  }

  Loop& loop_;
  Socket* single_ = nullptr;
  std::span<Socket* const> several_;
  For what_;
  Time deadline_;
  Woken woken_ = Woken::ready;
  std::coroutine_handle<> coroutine_;
  std::multimap<Time, Wait*>::iterator timer_;
  Wait* previous_ = nullptr;  // of all that wait
  Wait* next_ = nullptr;
};

struct Retire {
  Loop* loop = nullptr;
  void operator()(Socket* socket) const;
};
using SocketPtr = std::unique_ptr<Socket, Retire>;

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  Loop(Loop&&) = delete;
  Loop& operator=(Loop&&) = delete;

  // Takes a non-blocking descriptor. Null if the kernel has no room for it.
  [[nodiscard]] SocketPtr adopt(sys::Fd fd, std::uint32_t events = all_events);

  Wait readable(Socket& socket, Time deadline = never) {
    return {*this, socket, Wait::For::reading, deadline};
  }
  Wait writable(Socket& socket, Time deadline = never) {
    return {*this, socket, Wait::For::writing, deadline};
  }
  // `sockets` must live until it is over.
  Wait any_writable(std::span<Socket* const> sockets, Time deadline) {
    return {*this, sockets, deadline};
  }
  Wait sleep_until(Time time) { return {*this, time}; }

  // For a descriptor that somebody else closes, too: what the kernel shall tell of it.
  void set_events(Socket& socket, std::uint32_t events);
  void remove(Socket& socket);

  // Has its events told again, in a later round.
  void look_again(Socket& socket);

  // Wakes whoever waits on the socket, as cancelled.
  void cancel(Socket& socket);

  // Something to be looked at now and then: `look` says when it wants to be called next, and
  // call_soon() has it called in the next round.
  using LookId = std::size_t;
  [[nodiscard]] LookId every(std::function<Time(Time now)> look);
  void call_soon(LookId id) { looks_[id].next = Time{}; }

  [[nodiscard]] Time now() const { return now_; }
  void run();
  void stop() { running_ = false; }
  // Wakes everything that waits, as cancelled, until nothing waits any more.
  void cancel_all();

 private:
  friend class Wait;
  friend struct Retire;
  struct Look {
    Time next;
    std::function<Time(Time)> look;
  };

  void begin(Wait& wait);
  void forget(Wait& wait);
  void wake(Wait& wait, Woken woken);
  void dispatch(Socket& socket, std::uint32_t events);
  void dispatch_all(std::span<const epoll_event> events);
  void run_timers();
  [[nodiscard]] int timeout() const;
  void retire(Socket* socket);

  sys::Fd epoll_;
  Time now_ = Clock::now();
  bool running_ = true;
  std::multimap<Time, Wait*> timers_;
  std::vector<Look> looks_;
  std::vector<std::unique_ptr<Socket>> retired_;
  Wait* waiting_ = nullptr;
};

}  // namespace capgate::egress
