// What the programs of bench/egress share: sockets on loopback, epoll, and ending with a reason.
// They are single-threaded, and each looks its connections up by descriptor.
#pragma once

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace capgate::bench {

inline constexpr rlim_t wanted_descriptors = 40000;  // two for each of 8,000 tunnels, and pipes
inline constexpr int backlog = 4096;

// What a client asks the origin for. Neither begins TLS or HTTP.
inline constexpr char ask_echo = 1;
inline constexpr char ask_download = 2;

template <class... Args>
[[noreturn]] void stop(fmt::format_string<Args...> text, Args&&... args) {
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name,
             fmt::format(text, std::forward<Args>(args)...));
  std::exit(1);
}

inline int need(int result, std::string_view what) {
  if (result < 0) stop("{}: {}", what, strerror(errno));
  return result;
}

// As far as this user may.
inline void raise_descriptor_limit() {
  rlimit limit{.rlim_cur = wanted_descriptors, .rlim_max = wanted_descriptors};
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

inline void send_at_once(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Closing then resets the connection.
inline void reset_on_close(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

inline int listen_on(std::uint16_t port) {
  const int fd = need(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const sockaddr_in address = loopback(port);
  need(bind(fd, generic(address), sizeof(address)), fmt::format("bind to port {}", port));
  need(listen(fd, backlog), "listen");
  return fd;
}

// Makes the other side feel that it is read slowly. What is accepted inherits it.
inline void receive_little(int fd) {
  const int bytes = 4096;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

enum class Window : unsigned char { usual, small };

// The connection is under way, or -1 with errno.
inline int start_connecting(const sockaddr_in& address, Window window = Window::usual) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  send_at_once(fd);
  if (window == Window::small) receive_little(fd);
  if (connect(fd, generic(address), sizeof(address)) < 0 && errno != EINPROGRESS) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

inline bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

class Poller {
 public:
  static constexpr int most_events = 256;

  // Edge-triggered: a descriptor is told of once for each change, so that a connection costs one
  // registration for its whole life.
  void add(int fd, std::uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) const {
    epoll_event event{.events = events, .data = {.fd = fd}};
    need(epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  }

  void change(int fd, std::uint32_t events) const {
    epoll_event event{.events = events, .data = {.fd = fd}};
    need(epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event), "epoll_ctl");
  }

  template <class Handle>
  void wait(int milliseconds, Handle handle) {
    const int count = epoll_wait(epoll_, events_, most_events, milliseconds);
    if (count < 0 && errno != EINTR) stop("epoll_wait: {}", strerror(errno));
    for (int i = 0; i < count; ++i) handle(events_[i].data.fd, events_[i].events);
  }

 private:
  int epoll_ = need(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  epoll_event events_[most_events] = {};
};

inline std::uint64_t parse_number(std::string_view word, std::uint64_t most) {
  std::uint64_t number = 0;
  for (const char digit : word) {
    if (digit < '0' || digit > '9') stop("not a number: {}", word);
    number = 10 * number + static_cast<unsigned char>(digit - '0');
    if (number > most) stop("too large: {}", word);
  }
  if (word.empty()) stop("a number is missing");
  return number;
}

inline std::uint16_t parse_port(std::string_view word) {
  return static_cast<std::uint16_t>(parse_number(word, 65535));
}

}  // namespace capgate::bench
