// The traffic of the soak: clients and origins in one thread, which check every byte that arrives.
//
//   traffic PROXY ORIGIN SEED COUNT AT_ONCE RECORDS
//
// PROXY is a port, ORIGIN the first of origin_ports ports. Prints "at PERCENT" as it goes on.
// "down" on stdin says that the relay is going to be killed, "up" that it is there again; both are
// answered with "ok". Connections that lived meanwhile may end early, but never carry a wrong byte.
// RECORDS gets a line for each connection that reached an origin:
//   PORT NUMBER RECEIVED SENT WHOLE LIFE      (LIFE: how often the relay had been started)
// At the end prints one line of JSON, and waits for the end of stdin.
#include <fcntl.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net.h"
#include "stream.h"

namespace {

using namespace capgate::bench;

constexpr std::uint16_t origin_ports = 16;
constexpr int stalled_ms = 20'000;
constexpr std::size_t most_told = 20;  // mistakes
constexpr std::uint64_t connections_in_a_while = 20;
constexpr std::size_t chunk = 16 * 1024;
constexpr std::uint64_t unknown = ~std::uint64_t{0};

struct Side {
  enum class Role : unsigned char { client, origin };
  enum class State : unsigned char { connecting, awaits_tunnel, awaits_number, open };
  Role role = Role::client;
  State state = State::connecting;
  std::uint64_t id = unknown;
  std::uint16_t port = 0;  // of the origin
  Plan plan;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  bool said_end = false;
  bool heard_end = false;
  bool lingers = false;  // is going to leave
  std::string head;      // client: the proxy's answer. Origin: the number

  [[nodiscard]] bool is_client() const { return role == Role::client; }
  [[nodiscard]] std::uint64_t to_send() const { return is_client() ? plan.up : plan.down; }
  [[nodiscard]] std::uint64_t to_receive() const { return is_client() ? plan.down : plan.up; }
  // How much it may send by now.
  [[nodiscard]] std::uint64_t may_send() const {
    if (plan.ending == Ending::client_first && !is_client() && !heard_end) return 0;
    if (plan.ending == Ending::origin_first && is_client() && !heard_end) return number_bytes;
    return to_send();
  }
  [[nodiscard]] bool is_leaver() const {
    return is_client()
               ? plan.ending == Ending::client_resets || plan.ending == Ending::client_leaves
               : plan.ending == Ending::origin_resets || plan.ending == Ending::origin_leaves;
  }
  [[nodiscard]] bool is_deaf() const { return is_leaver() && plan.reads_nothing; }
  [[nodiscard]] bool is_time_to_leave() const {
    return is_leaver() && (sent + received >= plan.cut_at || (is_deaf() && sent == to_send()));
  }
  [[nodiscard]] bool resets() const {
    return plan.ending == Ending::client_resets || plan.ending == Ending::origin_resets;
  }
};

struct Lingering {
  int fd = -1;
  std::uint64_t until = 0;  // so many clients have ended
};

struct Order {
  std::uint16_t proxy = 0;
  std::uint16_t origin = 0;
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
  std::uint64_t at_once = 0;
};

class Traffic {
 public:
  Traffic(const Order& order, std::FILE* records)
      : order_(order), records_(records), sides_(wanted_descriptors), life_of_(order.count) {
    for (std::uint16_t i = 0; i < origin_ports; ++i) {
      const auto port = static_cast<std::uint16_t>(order.origin + i);
      listeners_.push_back(listen_on(port));
      if (i % 3 == 0) receive_little(listeners_.back());
      poller_.add(listeners_.back(), EPOLLIN);
    }
    need(fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK), "fcntl");
    poller_.add(STDIN_FILENO, EPOLLIN);
  }

  // True if nothing was wrong.
  bool run() {
    while (ended_clients_ < order_.count || live_ > 0) {
      while (started_ < order_.count && live_clients_ < order_.at_once) start_client();
      bool any = false;
      poller_.wait(stalled_ms, [&](int fd, std::uint32_t events) {
        any = true;
        serve(fd, events);
      });
      end_lingering();
      for (const int fd : closed_) close(fd);
      closed_.clear();
      if (driver_is_gone_) stop("the driver is gone");
      if (!any) return tell_of_stall();
      tell_progress();
    }
    print_sums();
    return mistakes_ == 0;
  }

  // An order may be under way when the last connection ends.
  void wait_for_driver() {
    while (!driver_is_gone_) {
      poller_.wait(stalled_ms, [this](int fd, std::uint32_t) {
        if (fd == STDIN_FILENO) obey();
      });
    }
  }

 private:
  // ---- life of a side --------------------------------------------------------------------------

  void start_client() {
    const std::uint64_t id = started_++;
    const int fd =
        start_connecting(loopback(order_.proxy), id % 3 == 0 ? Window::small : Window::usual);
    if (fd < 0) stop("connect: {}", strerror(errno));
    const auto port = static_cast<std::uint16_t>(order_.origin + id % origin_ports);
    life_of_[id] = life_;
    ++live_clients_;
    open(fd, {.id = id, .port = port, .plan = plan_of(order_.seed, id)});
  }

  void accept_all(std::size_t index) {
    int fd = -1;
    while ((fd = accept4(listeners_[index], nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
      send_at_once(fd);
      ++seen_by_origins_;
      open(fd, {.role = Side::Role::origin,
                .state = Side::State::awaits_number,
                .port = static_cast<std::uint16_t>(order_.origin + index)});
    }
  }

  void open(int fd, Side side) {
    sides_[static_cast<std::size_t>(fd)] = std::make_unique<Side>(std::move(side));
    ++live_;
    poller_.add(fd);
  }

  void end(int fd) {
    const std::unique_ptr<Side> side = std::move(sides_[static_cast<std::size_t>(fd)]);
    judge(*side);
    --live_;
    if (side->is_client()) {
      --live_clients_;
      ++ended_clients_;
    }
    closed_.push_back(fd);
  }

  // ---- events ----------------------------------------------------------------------------------

  void serve(int fd, std::uint32_t events) {
    if (fd == STDIN_FILENO) return obey();
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      if (listeners_[i] == fd) return accept_all(i);
    }
    Side* side = sides_[static_cast<std::size_t>(fd)].get();
    if (side == nullptr || side->lingers) return;
    if (!go_on(fd, *side, events)) end(fd);
  }

  // False once the side has ended.
  bool go_on(int fd, Side& side, std::uint32_t events) {
    if (side.state == Side::State::connecting) {
      if ((events & EPOLLOUT) == 0) return (events & EPOLLERR) == 0;
      if (!ask_for_tunnel(fd, side)) return false;
      side.state = Side::State::awaits_tunnel;
    }
    if (side.state == Side::State::awaits_tunnel && !read_head(fd, side)) return !is_over_;
    if (side.state == Side::State::awaits_number && !read_number(fd, side)) return !is_over_;
    return exchange(fd, side);
  }

  bool ask_for_tunnel(int fd, const Side& side) {
    std::string ask =
        fmt::format("CONNECT 127.0.0.1:{0} HTTP/1.1\r\nHost: 127.0.0.1:{0}\r\n\r\n", side.port);
    if (side.plan.ending == Ending::gives_up) {
      if (side.id % 3 == 0) ask.resize(ask.size() / 2);
      if (side.id % 2 == 0) reset_on_close(fd);
    }
    const ssize_t put = send(fd, ask.data(), ask.size(), MSG_NOSIGNAL);
    return put == static_cast<ssize_t>(ask.size()) && side.plan.ending != Ending::gives_up;
  }

  // One byte at a time: what follows belongs to the tunnel.
  bool read_head(int fd, Side& side) {
    char byte = 0;
    ssize_t got = 0;
    while ((got = recv(fd, &byte, 1, 0)) == 1) {
      side.head += byte;
      if (!side.head.ends_with("\r\n\r\n")) continue;
      is_over_ = side.head.find(" 200 ") > 12;
      side.state = Side::State::open;
      return !is_over_;
    }
    is_over_ = got == 0 || !would_block();
    return false;
  }

  bool read_number(int fd, Side& side) {
    char bytes[number_bytes];
    const ssize_t got = recv(fd, bytes, number_bytes - side.head.size(), 0);
    is_over_ = got == 0 || (got < 0 && !would_block());
    if (got <= 0) return false;
    side.head.append(bytes, static_cast<std::size_t>(got));
    if (side.head.size() < number_bytes) return read_number(fd, side);
    std::uint64_t number = 0;
    std::memcpy(&number, side.head.data(), number_bytes);
    side.id = number >> 8;
    if (side.id >= order_.count || number != number_of(side.id)) {
      tell(fmt::format("a number that was never sent: {:x}", number));
      side.id = unknown;
      is_over_ = true;
      return false;
    }
    side.plan = plan_of(order_.seed, side.id);
    side.received = number_bytes;
    side.state = Side::State::open;
    return true;
  }

  bool exchange(int fd, Side& side) {
    bool moved = true;
    while (moved) {
      moved = false;
      if (side.is_time_to_leave()) return leave(fd, side);
      if (!send_some(fd, side, moved) || !receive_some(fd, side, moved)) return false;
    }
    return !(side.said_end && side.heard_end);
  }

  // One that reads nothing stays a while, so that the relay comes to hold what it cannot pass on.
  bool leave(int fd, Side& side) {
    if (side.resets()) reset_on_close(fd);
    if (!side.is_deaf()) return false;
    side.lingers = true;
    lingering_.push_back({.fd = fd, .until = ended_clients_ + connections_in_a_while});
    return true;
  }

  // Never waits for those alone that wait themselves.
  void end_lingering() {
    while (!lingering_.empty() &&
           (lingering_.front().until <= ended_clients_ || lingering_.size() > order_.at_once / 2 ||
            started_ == order_.count)) {
      end(lingering_.front().fd);
      lingering_.pop_front();
    }
  }

  // The number is in front of the client's bytes, as if it were the first of them.
  void fill(const Side& side, std::uint64_t position, std::span<char> to) const {
    const auto direction = side.is_client() ? Direction::up : Direction::down;
    Bytes(order_.seed, side.id, direction).fill(position, to);
    if (!side.is_client() || position >= number_bytes) return;
    const std::uint64_t number = number_of(side.id);
    std::memcpy(to.data(), reinterpret_cast<const char*>(&number) + position,
                std::min<std::size_t>(number_bytes - position, to.size()));
  }

  bool send_some(int fd, Side& side, bool& moved) {
    char bytes[chunk];
    const std::uint64_t most = side.may_send();
    if (side.sent < most) {
      const std::span<char> part(bytes, std::min<std::uint64_t>(chunk, most - side.sent));
      fill(side, side.sent, part);
      const ssize_t put = send(fd, part.data(), part.size(), MSG_NOSIGNAL);
      if (put < 0) return would_block();
      side.sent += static_cast<std::uint64_t>(put);
      moved = true;
    }
    if (side.sent == side.to_send() && most == side.to_send() && !side.said_end) {
      side.said_end = true;
      shutdown(fd, SHUT_WR);
    }
    return true;
  }

  bool receive_some(int fd, Side& side, bool& moved) {
    char bytes[chunk];
    char expected[chunk];
    if (side.heard_end || side.is_deaf()) return true;
    const ssize_t got = recv(fd, bytes, chunk, 0);
    if (got < 0) return would_block();
    moved = true;
    side.heard_end = got == 0;
    const auto size = static_cast<std::size_t>(got);
    const auto direction = side.is_client() ? Direction::down : Direction::up;
    Bytes(order_.seed, side.id, direction).fill(side.received, {expected, size});
    if (std::memcmp(bytes, expected, size) != 0 || side.received + size > side.to_receive()) {
      tell(fmt::format("connection {}: wrong bytes after {} of {} at the {}", side.id,
                       side.received, side.to_receive(), name(side)));
      return false;
    }
    side.received += size;
    checked_bytes_ += size;
    return true;
  }

  // ---- verdicts --------------------------------------------------------------------------------

  static std::string_view name(const Side& side) { return side.is_client() ? "client" : "origin"; }

  // Killed meanwhile: the relay. While it is down, lives are odd.
  [[nodiscard]] bool may_be_cut(std::uint64_t id) const {
    return life_of_[id] != life_ || life_of_[id] % 2 != 0;
  }

  void judge(const Side& side) {
    const bool is_complete = side.said_end && side.heard_end && side.received == side.to_receive();
    if (side.id == unknown) {
      ++without_number_;
    } else if (is_whole(side.plan.ending)) {
      whole_ += is_complete ? 1 : 0;
      if (!is_complete && may_be_cut(side.id)) ++cut_;
      if (!is_complete && !may_be_cut(side.id)) {
        tell(fmt::format("connection {} ended early at the {}: sent {} of {}, received {} of {}",
                         side.id, name(side), side.sent, side.to_send(), side.received,
                         side.to_receive()));
      }
    }
    if (side.is_client()) return;
    const bool is_known = side.id != unknown;
    fmt::print(records_, "{} {} {} {} {} {}\n", side.port,
               is_known ? static_cast<long long>(side.id) : -1, side.received, side.sent,
               is_known && is_whole(side.plan.ending) && is_complete ? 1 : 0,
               is_known ? life_of_[side.id] / 2 : 0);
  }

  void tell(const std::string& mistake) {
    if (++mistakes_ <= most_told) fmt::print(stderr, "{}\n", mistake);
  }

  bool tell_of_stall() {
    for (std::size_t fd = 0; fd < sides_.size(); ++fd) {
      const Side* side = sides_[fd].get();
      if (side == nullptr) continue;
      tell(fmt::format("connection {} stands still at the {}: sent {} of {}, received {} of {}",
                       static_cast<long long>(side->id), name(*side), side->sent, side->to_send(),
                       side->received, side->to_receive()));
    }
    print_sums();
    return false;
  }

  // ---- the driver ------------------------------------------------------------------------------

  void obey() {
    char line[64];
    ssize_t got = 0;
    while ((got = read(STDIN_FILENO, line, sizeof(line))) > 0) {
      const std::string_view order(line, static_cast<std::size_t>(got));
      if (order != (life_ % 2 == 0 ? "down\n" : "up\n")) stop("not an order: {}", order);
      ++life_;
      say("ok");
    }
    driver_is_gone_ = got == 0;
  }

  void tell_progress() {
    const std::uint64_t percent = ended_clients_ * 100 / order_.count;
    if (percent != told_percent_) say(fmt::format("at {}", told_percent_ = percent));
  }

  static void say(std::string_view line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  void print_sums() const {
    std::fflush(records_);
    say(
        fmt::format("{{\"connections\":{},\"origins_saw\":{},\"without_number\":{},"
                    "\"whole_ends\":{},\"cut_ends\":{},\"checked_bytes\":{},\"mistakes\":{}}}",
                    ended_clients_, seen_by_origins_, without_number_, whole_, cut_, checked_bytes_,
                    mistakes_));
  }

  Order order_;
  std::FILE* records_;
  Poller poller_;
  std::vector<int> listeners_;
  std::vector<std::unique_ptr<Side>> sides_;  // by descriptor
  std::vector<int> closed_;
  std::deque<Lingering> lingering_;
  std::vector<std::uint32_t> life_of_;  // by number, when it was started
  std::uint32_t life_ = 0;
  bool driver_is_gone_ = false;
  bool is_over_ = false;  // said by the function that has just read
  std::uint64_t started_ = 0;
  std::uint64_t live_ = 0;
  std::uint64_t live_clients_ = 0;
  std::uint64_t ended_clients_ = 0;
  std::uint64_t seen_by_origins_ = 0;
  std::uint64_t without_number_ = 0;
  std::uint64_t whole_ = 0;
  std::uint64_t cut_ = 0;
  std::uint64_t checked_bytes_ = 0;
  std::uint64_t mistakes_ = 0;
  std::uint64_t told_percent_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  if (words.size() != 7) stop("usage: traffic PROXY ORIGIN SEED COUNT AT_ONCE RECORDS");
  raise_descriptor_limit();
  std::FILE* records = std::fopen(words[6], "we");
  if (records == nullptr) stop("{}: {}", words[6], strerror(errno));
  const Order order{.proxy = parse_port(words[1]),
                    .origin = parse_port(words[2]),
                    .seed = parse_number(words[3], ~std::uint64_t{0} / 16),
                    .count = parse_number(words[4], 10'000'000),
                    .at_once = parse_number(words[5], 5'000)};
  Traffic traffic(order, records);
  const bool is_right = traffic.run();
  traffic.wait_for_driver();
  return is_right ? 0 : 1;
}
