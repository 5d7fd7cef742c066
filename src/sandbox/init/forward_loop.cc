// The parent of `capgate-init forward`: one loop that copies bytes, passes signals on and reaps.
#include <asm/unistd.h>
#include <linux/eventpoll.h>
#include <linux/mman.h>
#include <linux/signal.h>
#include <linux/signalfd.h>
#include <linux/wait.h>

#include "sandbox/init/forward.h"

namespace capgate::sandbox::init {
namespace {

constexpr long interrupted = -4;
constexpr long again = -11;
constexpr long close_on_exec = 02000000;
constexpr long non_blocking = 04000;
constexpr std::uint32_t most_connections = 1024;
constexpr std::uint32_t buffer_size = 32768;
constexpr int turns = 16;      // then another connection has its own
constexpr long patience = 20;  // milliseconds until something that was full is tried again

// One direction.
struct Lane {
  char* buffer;
  std::uint32_t begin;
  std::uint32_t end;
  bool at_end;   // nothing more comes
  bool is_done;  // and the other side knows it
};

struct Connection {
  bool is_live;
  bool is_waiting;  // for room at the broker
  bool is_busy;     // its turns were not enough
  bool is_broken;
  int client;
  int broker;
  Lane to_broker;
  Lane to_client;
};

Connection connections[most_connections];

enum class Moved : unsigned char { waits, goes_on, broken };

// What it can, from one socket to the other. A receiver that is gone ends this direction alone: the
// other one may still hold its answer.
Moved move(Lane& lane, int from, int to) {
  for (int turn = 0; turn < turns && !lane.is_done; ++turn) {
    if (lane.begin == lane.end && !lane.at_end) {
      const long size = call(__NR_read, from, lane.buffer, buffer_size);
      if (size == interrupted) continue;
      if (size == again) return Moved::waits;
      if (size < 0) return Moved::broken;
      lane.at_end = size == 0;
      lane.begin = 0;
      lane.end = static_cast<std::uint32_t>(size);
    }
    if (lane.begin < lane.end) {
      constexpr long no_signal = 0x4000;
      const long size = call(__NR_sendto, to, lane.buffer + lane.begin, lane.end - lane.begin,
                             no_signal, nullptr, 0);
      if (size == interrupted) continue;
      if (size == again) return Moved::waits;
      if (size < 0) {
        lane.is_done = true;
        return Moved::waits;
      }
      lane.begin += static_cast<std::uint32_t>(size);
    } else if (lane.at_end) {
      constexpr long writing = 1;
      call(__NR_shutdown, to, writing);
      lane.is_done = true;
    }
  }
  return lane.is_done ? Moved::waits : Moved::goes_on;
}

class Loop {
 public:
  explicit Loop(const Carried& carried)
      : path_(carried.orders.socket),
        command_(carried.command),
        listener_(carried.listener),
        events_(call(__NR_epoll_create1, close_on_exec)),
        signals_(call(__NR_signalfd4, -1, &all_signals, sizeof(all_signals),
                      close_on_exec | non_blocking)) {
    watch(listener_, EPOLLIN, listener_key);
    watch(signals_, EPOLLIN, signals_key);
  }

  [[noreturn]] void run() {
    for (;;) {
      epoll_event events[64];
      const long count =
          call(__NR_epoll_pwait, events_, events, 64, timeout(), nullptr, sizeof(all_signals));
      bool has_callers = false;
      for (long i = 0; i < count; ++i) {
        const std::uint64_t key = events[i].data;
        if (key == signals_key) take_signals();
        if (key == listener_key) has_callers = true;
        if (key < most_connections) pump(connections[key]);
      }
      // After the events: none of them is of a connection that takes an earlier one's place.
      look_again();
      if (has_callers || is_full_) accept();
    }
  }

 private:
  static constexpr std::uint64_t listener_key = most_connections;
  static constexpr std::uint64_t signals_key = most_connections + 1;
  static constexpr std::uint64_t all_signals = ~0ULL;

  bool watch(long fd, std::uint32_t what, std::uint64_t key) const {
    epoll_event event{};
    event.events = what;
    event.data = key;
    return call(__NR_epoll_ctl, events_, EPOLL_CTL_ADD, fd, &event) == 0;
  }

  [[nodiscard]] long timeout() const {
    if (busy_ > 0) return 0;
    return waiting_ > 0 || is_full_ ? patience : -1;
  }

  // ---- the command ------------------------------------------------------------------------------

  void take_signals() const {
    signalfd_siginfo info{};
    while (call(__NR_read, signals_, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGCHLD) {
        reap();
        continue;
      }
      // A terminal has sent it to the command as well, and SIGPIPE is about our own sockets.
      constexpr std::int32_t from_kernel = 0x80;
      if (info.ssi_code == from_kernel || info.ssi_signo == SIGPIPE) continue;
      call(__NR_kill, command_, info.ssi_signo);
    }
  }

  void reap() const {
    for (;;) {
      int status = 0;
      const long pid = call(__NR_wait4, -1, &status, WNOHANG, nullptr);
      if (pid == interrupted) continue;
      if (pid <= 0) return;
      if (pid != command_) continue;
      const int signal = status & 0x7f;
      for (;;) call(__NR_exit_group, signal != 0 ? 128 + signal : (status >> 8) & 0xff);
    }
  }

  // ---- connections ------------------------------------------------------------------------------

  void look_again() {
    if (busy_ == 0 && waiting_ == 0) return;
    for (Connection& connection : connections) {
      if (!connection.is_live) continue;
      if (connection.is_waiting) connect(connection);
      if (connection.is_live && connection.is_busy) pump(connection);
    }
  }

  void accept() {
    is_full_ = false;
    for (;;) {
      Connection* const free = find_free();
      if (free == nullptr) return leave_callers();
      const long client =
          call(__NR_accept4, listener_, nullptr, nullptr, close_on_exec | non_blocking);
      if (client == again) return watch_callers();
      if (client == interrupted) continue;
      if (client < 0) return leave_callers();  // no descriptor, say
      begin(*free, client);
    }
  }

  // Callers wait in the kernel's queue until there is room.
  void leave_callers() {
    is_full_ = true;
    if (is_watched_) call(__NR_epoll_ctl, events_, EPOLL_CTL_DEL, listener_, nullptr);
    is_watched_ = false;
  }
  void watch_callers() {
    if (!is_watched_) is_watched_ = watch(listener_, EPOLLIN, listener_key);
  }

  static Connection* find_free() {
    for (Connection& connection : connections) {
      if (!connection.is_live) return &connection;
    }
    return nullptr;
  }

  void begin(Connection& connection, long client) {
    const long memory = call(__NR_mmap, 0, 2 * buffer_size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    connection = {};
    connection.is_live = true;
    connection.client = static_cast<int>(client);
    connection.broker = -1;
    if (memory < 0 && memory > -4096) {
      connection.is_broken = true;
      return close(connection);
    }
    connection.to_broker.buffer = reinterpret_cast<char*>(memory);
    connection.to_client.buffer = connection.to_broker.buffer + buffer_size;
    connect(connection);
  }

  // A Unix socket whose queue is full says so at once instead of waiting.
  void connect(Connection& connection) {
    const long broker = connect_to_broker(path_);
    const bool is_waiting = broker == again;
    set(connection.is_waiting, is_waiting, waiting_);
    if (is_waiting) return;
    connection.broker = static_cast<int>(broker);
    constexpr std::uint32_t everything = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    const auto key = static_cast<std::uint64_t>(&connection - connections);
    if (broker < 0 || !watch(broker, everything, key) ||
        !watch(connection.client, everything, key)) {
      connection.is_broken = true;
      return close(connection);
    }
    pump(connection);
  }

  void pump(Connection& connection) {
    if (!connection.is_live || connection.is_waiting) return;
    const Moved there = move(connection.to_broker, connection.client, connection.broker);
    const Moved back = move(connection.to_client, connection.broker, connection.client);
    connection.is_broken = there == Moved::broken || back == Moved::broken;
    const bool is_over = connection.to_broker.is_done && connection.to_client.is_done;
    set(connection.is_busy, there == Moved::goes_on || back == Moved::goes_on, busy_);
    if (connection.is_broken || is_over) close(connection);
  }

  // The client must be able to tell a broken connection from one that has ended.
  void close(Connection& connection) {
    if (connection.is_broken) {
      constexpr long level_socket = 1;
      constexpr long linger = 13;
      const int at_once[2] = {1, 0};
      call(__NR_setsockopt, connection.client, level_socket, linger, at_once, sizeof(at_once));
    }
    call(__NR_close, connection.client);
    if (connection.broker >= 0) call(__NR_close, connection.broker);
    if (connection.to_broker.buffer != nullptr) {
      call(__NR_munmap, connection.to_broker.buffer, 2 * buffer_size);
    }
    set(connection.is_busy, false, busy_);
    set(connection.is_waiting, false, waiting_);
    connection.is_live = false;
  }

  static void set(bool& flag, bool value, std::uint32_t& count) {
    if (flag == value) return;
    flag = value;
    count += value ? 1U : ~0U;
  }

  const char* path_;
  long command_;
  long listener_;
  long events_;
  long signals_;
  std::uint32_t busy_ = 0;
  std::uint32_t waiting_ = 0;
  bool is_full_ = false;
  bool is_watched_ = true;
};

}  // namespace

// Nobody is left to be told why; the command dies with this process.
void carry(const Carried& carried) {
  Loop loop(carried);
  constexpr long refused = 125;
  if (confine_forwarder(carried.command) < 0) give_up(refused, {});
  loop.run();
}

}  // namespace capgate::sandbox::init
