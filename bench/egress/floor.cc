// The least that a CONNECT proxy can cost: one thread, epoll, splice. No policy, no names, no
// audit, no limits, no timeouts: never a proxy to be used.
//
//   floor PORT     listens on 127.0.0.1
//   floor -        its stdin is the listening socket
//
// Only "CONNECT a.b.c.d:port" that arrives in one segment is understood.
#include <fcntl.h>

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "net.h"

namespace {

using namespace capgate::bench;

constexpr int pipe_bytes = 1 << 18;
constexpr std::string_view established = "HTTP/1.1 200 OK\r\n\r\n";

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

enum class State : unsigned char { unused, awaits_head, dialling, relays };

// One end of a tunnel; the table of them is indexed by descriptor. The pipe carries what was read
// from this end to its peer, and is held only while bytes are in it.
struct End {
  int peer = -1;
  Pipe pipe;
  unsigned in_pipe = 0;
  State state = State::unused;
  bool may_read = false;  // there was an event since it had nothing to read
  bool may_write = false;
  bool read_to_end = false;
  bool told_peer = false;  // of the end
};

class Relay {
 public:
  explicit Relay(int listener) : listener_(listener) {
    ends_.reserve(wanted_descriptors);  // references stay valid; untouched pages cost nothing
    poller_.add(listener_, EPOLLIN);
  }

  [[noreturn]] void run() {
    while (true) {
      poller_.wait(-1, [this](int fd, std::uint32_t events) {
        if (fd == listener_) {
          accept_all();
        } else {
          serve(fd, events);
        }
      });
      // Only now, so that no event of this round meets a descriptor's next owner.
      for (const int fd : ended_) close(fd);
      ended_.clear();
    }
  }

 private:
  End& end(int fd) { return ends_[static_cast<std::size_t>(fd)]; }

  void open(int fd, const End& fresh) {
    const auto index = static_cast<std::size_t>(fd);
    if (index >= wanted_descriptors) stop("too many descriptors");
    if (index >= ends_.size()) ends_.resize(index + 1);
    ends_[index] = fresh;
    poller_.add(fd);
  }

  void accept_all() {
    int fd = -1;
    while ((fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
      send_at_once(fd);
      open(fd, {.state = State::awaits_head});
      read_head(fd);
    }
  }

  void serve(int fd, std::uint32_t events) {
    switch (end(fd).state) {
      case State::unused: break;
      case State::awaits_head: read_head(fd); break;
      case State::dialling:
        if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
          drop(fd);
        } else if (end(fd).read_to_end && (events & EPOLLOUT) != 0) {
          establish(fd);
        }
        break;
      case State::relays:
        if ((events & EPOLLERR) != 0) return drop(fd);
        relay_after(fd, events);
        break;
    }
  }

  void relay_after(int fd, std::uint32_t events) {
    End& own = end(fd);
    // Most events say that it may be written, because it always may.
    const bool peer_waited = (events & EPOLLOUT) != 0 && !own.may_write;
    if ((events & EPOLLOUT) != 0) own.may_write = true;
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0) {
      own.may_read = true;
      move_bytes(fd);
    }
    if (peer_waited && own.state == State::relays) move_bytes(own.peer);
  }

  void read_head(int fd) {
    char head[1024];
    const ssize_t got = recv(fd, head, sizeof(head) - 1, 0);
    if (got < 0 && would_block()) return;
    sockaddr_in origin{};
    if (got <= 0 || !parse_head({head, static_cast<std::size_t>(got)}, origin)) return drop(fd);
    const int out = start_connecting(origin);
    if (out < 0) return drop(fd);
    end(fd).state = State::dialling;
    end(fd).peer = out;
    // The mark tells the end that dials from the other, until it is connected.
    open(out, {.peer = fd, .state = State::dialling, .read_to_end = true});
  }

  static bool parse_head(std::string_view head, sockaddr_in& origin) {
    constexpr std::string_view method = "CONNECT ";
    if (!head.starts_with(method) || !head.ends_with("\r\n\r\n")) return false;
    head.remove_prefix(method.size());
    const auto colon = head.find(':');
    const auto space = head.find(' ');
    if (space == head.npos || colon > space) return false;
    origin = loopback(parse_port(head.substr(colon + 1, space - colon - 1)));
    const std::string host(head.substr(0, colon));
    return inet_pton(AF_INET, host.c_str(), &origin.sin_addr) == 1;
  }

  void establish(int out) {
    const int client = end(out).peer;
    end(out).read_to_end = false;
    for (const int fd : {client, out}) {
      end(fd).state = State::relays;
      end(fd).may_read = end(fd).may_write = true;
    }
    if (send(client, established.data(), established.size(), MSG_NOSIGNAL) < 0) return drop(out);
    // What came before the tunnel stood will not be told of again.
    move_bytes(client);
    if (end(out).state == State::relays) move_bytes(out);
  }

  // From one end to its peer, until one of the two would block.
  void move_bytes(int from) {
    constexpr unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
    End& source = end(from);
    while (true) {
      if (source.in_pipe == 0) {
        if (source.read_to_end) return finish(from);
        if (!source.may_read) return give_back(source.pipe);
        if (source.pipe.read_end < 0) source.pipe = take_pipe();
        const ssize_t got =
            splice(from, nullptr, source.pipe.write_end, nullptr, pipe_bytes, flags);
        if (got < 0) {
          if (!would_block()) return drop(from);
          source.may_read = false;
          continue;
        }
        source.read_to_end = got == 0;
        source.in_pipe = static_cast<unsigned>(got);
        if (got == 0) continue;
      }
      if (!end(source.peer).may_write) return;
      const ssize_t put =
          splice(source.pipe.read_end, nullptr, source.peer, nullptr, source.in_pipe, flags);
      if (put < 0) {
        if (!would_block()) return drop(from);
        end(source.peer).may_write = false;
        return;
      }
      source.in_pipe -= static_cast<unsigned>(put);
    }
  }

  void finish(int from) {
    End& source = end(from);
    give_back(source.pipe);
    if (!source.told_peer) shutdown(source.peer, SHUT_WR);
    source.told_peer = true;
    if (end(source.peer).told_peer) forget(from);
  }

  // Something failed: both ends learn it as a reset.
  void drop(int fd) {
    reset_on_close(fd);
    if (end(fd).peer >= 0) reset_on_close(end(fd).peer);
    forget(fd);
  }

  void forget(int fd) {
    for (const int one : {fd, end(fd).peer}) {
      if (one < 0) continue;
      End& gone = end(one);
      if (gone.in_pipe > 0) {  // bytes of a dead tunnel must not reach another
        close(gone.pipe.read_end);
        close(gone.pipe.write_end);
      } else {
        give_back(gone.pipe);
      }
      gone = {};
      ended_.push_back(one);
    }
  }

  Pipe take_pipe() {
    if (!pool_.empty()) {
      const Pipe pipe = pool_.back();
      pool_.pop_back();
      return pipe;
    }
    int ends[2];
    need(pipe2(ends, O_NONBLOCK | O_CLOEXEC), "pipe2");
    fcntl(ends[0], F_SETPIPE_SZ, pipe_bytes);
    return {.read_end = ends[0], .write_end = ends[1]};
  }

  void give_back(Pipe& pipe) {
    if (pipe.read_end >= 0) pool_.push_back(std::exchange(pipe, {}));
  }

  int listener_;
  Poller poller_;
  std::vector<End> ends_;
  std::vector<Pipe> pool_;
  std::vector<int> ended_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) stop("usage: floor PORT | floor -");
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);  // splice has no MSG_NOSIGNAL
  const std::string_view place = argv[1];
  Relay(place == "-" ? STDIN_FILENO : listen_on(parse_port(place))).run();
}
