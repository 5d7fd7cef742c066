// Blocking sockets on 127.0.0.1 for tests of the broker, and a loop that runs beside them.
//
//   Stage stage;
//   auto [client, broker_side] = support::tcp_pair();
//   serve(stage.loop, stage.adopt(std::move(broker_side)));   // a coroutine
//   stage.play([&] { send_text(client, "x"); EXPECT_EQ(receive(client, 1), "y"); });
//
// The loop runs in the thread of the test, the script in another one; the loop ends with the
// script. Nothing waits for longer than `patience`, so that a mistake is a failure and no hang.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "egress/loop.h"
#include "egress/task.h"
#include "sys/fd.h"

namespace capgate::support {

inline constexpr int patience_seconds = 20;

struct Pair {
  sys::Fd first;
  sys::Fd second;
};

struct TcpListener {
  sys::Fd fd;
  std::uint16_t port = 0;
};

inline void limit_patience(const sys::Fd& fd) {
  const timeval most{.tv_sec = patience_seconds, .tv_usec = 0};
  ASSERT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
  ASSERT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)), 0);
}

[[nodiscard]] inline sockaddr_in loopback_address(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

[[nodiscard]] inline TcpListener listen_on_loopback(int backlog = 64) {
  TcpListener out{.fd = sys::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address = loopback_address(0);
  socklen_t size = sizeof(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(out.fd.get(), raw, size), 0);
  EXPECT_EQ(::listen(out.fd.get(), backlog), 0);
  EXPECT_EQ(::getsockname(out.fd.get(), raw, &size), 0);
  out.port = ntohs(address.sin_port);
  limit_patience(out.fd);
  return out;
}

// A port where nobody listens: bound, so that no other program gets it.
[[nodiscard]] inline TcpListener closed_port() {
  TcpListener out{.fd = sys::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address = loopback_address(0);
  socklen_t size = sizeof(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(out.fd.get(), raw, size), 0);
  EXPECT_EQ(::getsockname(out.fd.get(), raw, &size), 0);
  out.port = ntohs(address.sin_port);
  return out;
}

[[nodiscard]] inline sys::Fd connect_to(std::uint16_t port) {
  sys::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  limit_patience(fd);
  const sockaddr_in address = loopback_address(port);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

[[nodiscard]] inline sys::Fd accept_from(const TcpListener& listener) {
  sys::Fd fd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_GE(fd.get(), 0) << "nobody connected";
  if (fd.get() >= 0) limit_patience(fd);
  return fd;
}

[[nodiscard]] inline bool has_event(const sys::Fd& fd, short events, int milliseconds = 0) {
  pollfd poll{.fd = fd.get(), .events = events, .revents = 0};
  return ::poll(&poll, 1, milliseconds) == 1 && (poll.revents & events) != 0;
}

[[nodiscard]] inline bool has_caller(const TcpListener& listener) {
  return has_event(listener.fd, POLLIN);
}

[[nodiscard]] inline Pair tcp_pair() {
  const TcpListener listener = listen_on_loopback(1);
  sys::Fd first = connect_to(listener.port);
  return {.first = std::move(first), .second = accept_from(listener)};
}

[[nodiscard]] inline Pair unix_pair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  Pair out{.first = sys::Fd(ends[0]), .second = sys::Fd(ends[1])};
  limit_patience(out.first);
  limit_patience(out.second);
  return out;
}

// False if the peer is gone.
inline bool send_text(const sys::Fd& fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (size < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

// So many bytes, or fewer if the peer ended before.
[[nodiscard]] inline std::string receive(const sys::Fd& fd, std::size_t count) {
  std::string out(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const ssize_t size = ::recv(fd.get(), out.data() + have, count - have, 0);
    if (size <= 0) break;
    have += static_cast<std::size_t>(size);
  }
  out.resize(have);
  return out;
}

[[nodiscard]] inline std::string receive_all(const sys::Fd& fd) {
  std::string out;
  for (;;) {
    const std::string part = receive(fd, 4096);
    out += part;
    if (part.size() < 4096) return out;
  }
}

// How a peer that says nothing more ends: 0 in order, else errno (EAGAIN: it does not end).
[[nodiscard]] inline int end_of(const sys::Fd& fd) {
  char byte = 0;
  const ssize_t size = ::recv(fd.get(), &byte, 1, 0);
  EXPECT_LE(size, 0) << "it says more: " << byte;
  return size < 0 ? errno : 0;
}

inline void finish_sending(const sys::Fd& fd) { (void)::shutdown(fd.get(), SHUT_WR); }

inline void reset(sys::Fd& fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  fd = sys::Fd();
}

[[nodiscard]] inline std::size_t open_descriptors() {
  using std::filesystem::directory_iterator;
  return static_cast<std::size_t>(
      std::distance(directory_iterator("/proc/self/fd"), directory_iterator()));
}

namespace detail {

inline egress::Task stop_with(egress::Loop& loop, egress::SocketPtr socket) {
  (void)co_await loop.readable(*socket);
  loop.stop();
}

}  // namespace detail

[[nodiscard]] inline sys::Fd without_blocking(sys::Fd fd) {
  (void)::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  return fd;
}

// Once for each loop.
inline void play(egress::Loop& loop, const std::function<void()>& script) {
  // As the broker does: splice() knows no MSG_NOSIGNAL.
  (void)std::signal(SIGPIPE, SIG_IGN);
  Pair ends = unix_pair();
  detail::stop_with(loop, loop.adopt(without_blocking(std::move(ends.first))));
  std::thread thread([&] {
    script();
    ends.second = sys::Fd();
  });
  loop.run();
  thread.join();
}

class Stage {
 public:
  [[nodiscard]] egress::SocketPtr adopt(sys::Fd fd) {
    return loop.adopt(without_blocking(std::move(fd)));
  }
  void play(const std::function<void()>& script) { support::play(loop, script); }

  egress::Loop loop;
};

}  // namespace capgate::support
