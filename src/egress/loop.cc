#include "egress/loop.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace capgate::egress {

bool Wait::await_ready() const {
  return std::ranges::any_of(sockets(), [&](const Socket* socket) {
    return what_ == For::reading ? socket->is_readable : socket->is_writable;
  });
}

void Wait::await_suspend(std::coroutine_handle<> coroutine) {
  coroutine_ = coroutine;
  loop_.begin(*this);
}

void Retire::operator()(Socket* socket) const { loop->retire(socket); }

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}
Loop::~Loop() = default;

SocketPtr Loop::adopt(sys::Fd fd, std::uint32_t events) {
  SocketPtr socket(new Socket(std::move(fd)), Retire{this});
  epoll_event event{.events = events, .data = {.ptr = socket.get()}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket->fd(), &event) != 0) return nullptr;
  return socket;
}

Loop::LookId Loop::every(std::function<Time(Time now)> look) {
  looks_.push_back({never, std::move(look)});
  return looks_.size() - 1;
}

void Loop::begin(Wait& wait) {
  for (Socket* socket : wait.sockets()) {
    (wait.what_ == Wait::For::reading ? socket->reader_ : socket->writer_) = &wait;
  }
  if (wait.deadline_ != never) wait.timer_ = timers_.emplace(wait.deadline_, &wait);
  wait.next_ = waiting_;
  if (waiting_ != nullptr) waiting_->previous_ = &wait;
  waiting_ = &wait;
}

void Loop::forget(Wait& wait) {
  for (Socket* socket : wait.sockets()) {
    Wait*& place = wait.what_ == Wait::For::reading ? socket->reader_ : socket->writer_;
    if (place == &wait) place = nullptr;
  }
  if (wait.deadline_ != never) timers_.erase(wait.timer_);
  (wait.previous_ != nullptr ? wait.previous_->next_ : waiting_) = wait.next_;
  if (wait.next_ != nullptr) wait.next_->previous_ = wait.previous_;
}

void Loop::wake(Wait& wait, Woken woken) {
  forget(wait);
  wait.woken_ = woken;
  wait.coroutine_.resume();
}

void Loop::set_events(Socket& socket, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.ptr = &socket}};
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket.fd(), &event);
}

void Loop::remove(Socket& socket) {
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.fd(), nullptr);
}

void Loop::look_again(Socket& socket) { set_events(socket, all_events); }

void Loop::cancel(Socket& socket) {
  if (socket.reader_ != nullptr) wake(*socket.reader_, Woken::cancelled);
  if (socket.writer_ != nullptr) wake(*socket.writer_, Woken::cancelled);
}

void Loop::cancel_all() {
  while (waiting_ != nullptr) wake(*waiting_, Woken::cancelled);
}

// Closed now, freed later: an event of this round may still point to it.
void Loop::retire(Socket* socket) {
  socket->fd_ = sys::Fd();
  socket->owner = nullptr;
  retired_.emplace_back(socket);
}

void Loop::dispatch(Socket& socket, std::uint32_t events) {
  if (socket.fd() < 0) return;
  socket.has_failed |= (events & (EPOLLERR | EPOLLHUP)) != 0;
  socket.is_readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
  socket.has_ended |= (events & EPOLLRDHUP) != 0;
  socket.is_writable |= (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0;
  if (socket.is_readable && socket.reader_ != nullptr) wake(*socket.reader_, Woken::ready);
  if (socket.is_writable && socket.writer_ != nullptr) wake(*socket.writer_, Woken::ready);
  if (socket.fd() >= 0 && socket.owner != nullptr) socket.owner->on_event(socket);
}

// Who has hung up can wait until those who are still there were served.
void Loop::dispatch_all(std::span<const epoll_event> events) {
  for (const bool has_hung_up : {false, true}) {
    for (const epoll_event& event : events) {
      if (((event.events & EPOLLHUP) != 0) != has_hung_up) continue;
      dispatch(*static_cast<Socket*>(event.data.ptr), event.events);
    }
  }
}

void Loop::run_timers() {
  while (!timers_.empty() && timers_.begin()->first <= now_) {
    wake(*timers_.begin()->second, Woken::late);
  }
  for (Look& look : looks_) {
    if (look.next <= now_) look.next = look.look(now_);
  }
}

int Loop::timeout() const {
  Time next = timers_.empty() ? never : timers_.begin()->first;
  for (const Look& look : looks_) next = std::min(next, look.next);
  if (next == never) return -1;
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(next - now_);
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

void Loop::run() {
  std::array<epoll_event, 256> events{};
  while (running_) {
    now_ = Clock::now();
    run_timers();
    if (!running_) break;
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout());
    if (count < 0 && errno != EINTR) return;
    now_ = Clock::now();
    dispatch_all(std::span(events).first(static_cast<std::size_t>(std::max(count, 0))));
    retired_.clear();
  }
}

}  // namespace capgate::egress
