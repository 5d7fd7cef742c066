// Clients of a proxy, all in one thread; prints one line of JSON.
//
//   load rate PROXY ORIGIN CLIENTS SECONDS   tunnels a second: open, one byte there and back, close
//   load latency PROXY ORIGIN COUNT          microseconds of such a tunnel, one after the other
//   load stream PROXY ORIGIN STREAMS SECONDS bytes a second from the origin
//   load hold PROXY ORIGIN COUNT             opens tunnels, prints the line, keeps them until its
//                                            stdin ends
//
// PROXY is connect:PORT, socks5:PORT or direct:PORT; ORIGIN is a port. All on 127.0.0.1.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net.h"

namespace {

using namespace capgate::bench;
using Clock = std::chrono::steady_clock;

constexpr std::size_t opened_at_once = 64;  // by `hold`
constexpr auto longest_wait = std::chrono::seconds(30);
constexpr auto warm_up = std::chrono::milliseconds(300);

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What a client says to open a tunnel, step by step, and how long each answer is.
struct Dialect {
  struct Step {
    std::string said;
    std::size_t answer = 0;  // bytes; 0: up to the blank line
  };
  std::vector<Step> steps;
  sockaddr_in proxy{};
};

Dialect parse_dialect(std::string_view word, std::uint16_t origin) {
  const auto colon = word.find(':');
  if (colon == word.npos) stop("not a proxy: {}", word);
  const std::string_view kind = word.substr(0, colon);
  Dialect dialect{.proxy = loopback(parse_port(word.substr(colon + 1)))};
  if (kind == "connect") {
    const std::string place = fmt::format("127.0.0.1:{}", origin);
    dialect.steps = {{.said = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", place)}};
  } else if (kind == "socks5") {
    std::string request("\5\1\0\1\x7f\0\0\1", 8);
    request += static_cast<char>(origin >> 8);
    request += static_cast<char>(origin & 0xff);
    dialect.steps = {{.said = std::string("\5\1\0", 3), .answer = 2},
                     {.said = request, .answer = 10}};
  } else if (kind != "direct") {
    stop("not a proxy: {}", word);
  }
  return dialect;
}

struct Client {
  std::size_t step = 0;  // of the dialect; past its end: in the tunnel
  std::string answer;
  bool connected = false;
  Clock::time_point begun;
};

class Clients {
 public:
  Clients(Dialect dialect, char first_byte)
      : dialect_(std::move(dialect)), first_byte_(first_byte), clients_(wanted_descriptors) {}

  // `fd` has a tunnel, and a byte of the origin's was read. Others may be there.
  std::function<void(int fd)> on_answer;

  void open() {
    const int fd = start_connecting(dialect_.proxy);
    if (fd < 0) stop("connect: {}", strerror(errno));
    client(fd) = {.begun = Clock::now()};
    poller_.add(fd);
  }

  [[nodiscard]] Clock::time_point begun(int fd) { return client(fd).begun; }

  void wait() {
    bool any = false;
    poller_.wait(static_cast<int>(std::chrono::milliseconds(longest_wait).count()),
                 [&](int fd, std::uint32_t events) {
                   any = true;
                   serve(fd, events);
                 });
    if (!any) stop("the proxy does not answer any more");
  }

 private:
  Client& client(int fd) { return clients_[static_cast<std::size_t>(fd)]; }

  void serve(int fd, std::uint32_t events) {
    if (!client(fd).connected) {
      if ((events & EPOLLOUT) == 0) return;
      client(fd).connected = true;
      say(fd);
    }
    if ((events & (EPOLLIN | EPOLLERR)) == 0) return;
    while (client(fd).step < dialect_.steps.size()) {
      if (!answer_is_complete(fd)) return;
      ++client(fd).step;
      say(fd);
    }
    if (read_byte(fd)) on_answer(fd);
  }

  void say(int fd) {
    const std::size_t step = client(fd).step;
    const std::string_view words = step < dialect_.steps.size()
                                       ? std::string_view(dialect_.steps[step].said)
                                       : std::string_view(&first_byte_, 1);
    if (send(fd, words.data(), words.size(), MSG_NOSIGNAL) < 0) stop("send: {}", strerror(errno));
  }

  // Nothing follows an answer before the client speaks again, so all that is there belongs to it.
  bool answer_is_complete(int fd) {
    char bytes[1024];
    const ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
    if (got < 0 && would_block()) return false;
    if (got <= 0) stop("the proxy ended a connection: {}", got < 0 ? strerror(errno) : "closed");
    std::string& answer = client(fd).answer;
    answer.append(bytes, static_cast<std::size_t>(got));
    const std::size_t length = dialect_.steps[client(fd).step].answer;
    if (length == 0 ? !answer.ends_with("\r\n\r\n") : answer.size() < length) return false;
    const bool accepted = length == 0 ? answer.find(" 200 ") < 12 : answer[1] == 0;
    if (!accepted) stop("the proxy refused: {}", answer.substr(0, 60));
    answer = {};
    return true;
  }

  // Closing a socket with bytes unread would reset the connection instead of ending it.
  static bool read_byte(int fd) {
    char byte = 0;
    const ssize_t got = recv(fd, &byte, 1, 0);
    if (got < 0 && would_block()) return false;
    if (got <= 0) stop("a tunnel ended: {}", got < 0 ? strerror(errno) : "closed");
    return true;
  }

  Dialect dialect_;
  char first_byte_;
  Poller poller_;
  std::vector<Client> clients_;
};

std::size_t discard(int fd) {
  std::size_t sum = 0;
  ssize_t got = 0;
  // MSG_TRUNC: not copied to us; what is measured is the proxy.
  while ((got = recv(fd, nullptr, 1 << 20, MSG_TRUNC)) > 0) sum += static_cast<std::size_t>(got);
  if (got == 0) stop("a tunnel ended");
  return sum;
}

void measure_rate(const Dialect& dialect, std::size_t count, double seconds) {
  Clients clients(dialect, ask_echo);
  std::size_t opened = 0;
  std::size_t in_all = 0;  // with those that warm up
  clients.on_answer = [&](int fd) {
    close(fd);
    ++opened;
    ++in_all;
    clients.open();
  };
  for (std::size_t i = 0; i < count; ++i) clients.open();
  const auto start = Clock::now();
  while (Clock::now() - start < warm_up) clients.wait();
  opened = 0;
  const auto begin = Clock::now();
  while (seconds_since(begin) < seconds) clients.wait();
  fmt::print("{{\"rate\":{:.1f},\"opened\":{}}}\n",
             static_cast<double>(opened) / seconds_since(begin), in_all);
}

void measure_latency(const Dialect& dialect, std::size_t count) {
  Clients clients(dialect, ask_echo);
  constexpr std::size_t first_ones = 50;  // warm up
  std::vector<double> taken;
  clients.on_answer = [&](int fd) {
    taken.push_back(seconds_since(clients.begun(fd)) * 1e6);
    close(fd);
    if (taken.size() < count + first_ones) clients.open();
  };
  clients.open();
  while (taken.size() < count + first_ones) clients.wait();
  taken.erase(taken.begin(), taken.begin() + first_ones);
  std::ranges::sort(taken);
  fmt::print("{{\"p50\":{:.1f},\"p99\":{:.1f}}}\n", taken[count / 2], taken[count * 99 / 100]);
}

void measure_stream(const Dialect& dialect, std::size_t count, double seconds) {
  Clients clients(dialect, ask_download);
  std::size_t bytes = 0;
  clients.on_answer = [&](int fd) { bytes += discard(fd); };
  for (std::size_t i = 0; i < count; ++i) clients.open();
  const auto start = Clock::now();
  while (Clock::now() - start < warm_up) clients.wait();
  bytes = 0;
  const auto begin = Clock::now();
  while (seconds_since(begin) < seconds) clients.wait();
  fmt::print("{{\"bytes_per_second\":{:.0f}}}\n",
             static_cast<double>(bytes) / seconds_since(begin));
}

void hold(const Dialect& dialect, std::size_t count) {
  Clients clients(dialect, ask_echo);
  std::size_t started = 0;
  std::size_t open = 0;
  clients.on_answer = [&](int fd) {
    discard(fd);
    ++open;
    if (started < count) {
      ++started;
      clients.open();
    }
  };
  for (; started < std::min(count, opened_at_once); ++started) clients.open();
  while (open < count) clients.wait();
  fmt::print("{{\"open\":{}}}\n", open);
  std::fflush(stdout);
  char ignored = 0;
  while (read(STDIN_FILENO, &ignored, 1) > 0) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  if (words.size() < 5) stop("usage: load MODE PROXY ORIGIN NUMBER [SECONDS]");
  raise_descriptor_limit();
  const std::string_view mode = words[1];
  const Dialect dialect = parse_dialect(words[2], parse_port(words[3]));
  const std::size_t count = parse_number(words[4], 1'000'000);
  const double seconds = words.size() > 5 ? std::strtod(words[5], nullptr) : 1.0;
  if (mode == "rate") {
    measure_rate(dialect, count, seconds);
  } else if (mode == "latency") {
    measure_latency(dialect, count);
  } else if (mode == "stream") {
    measure_stream(dialect, count, seconds);
  } else if (mode == "hold") {
    hold(dialect, count);
  } else {
    stop("unknown mode: {}", mode);
  }
  return 0;
}
