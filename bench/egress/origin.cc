// What the tunnels of bench/egress lead to.
//
//   origin PORT
//
// A byte ask_echo is answered with one byte, ask_download with bytes until the client leaves.
#include <csignal>
#include <vector>

#include "net.h"

namespace {

using namespace capgate::bench;

class Origin {
 public:
  explicit Origin(int listener) : listener_(listener), downloads_(wanted_descriptors) {
    poller_.add(listener_, EPOLLIN);
  }

  [[noreturn]] void run() {
    while (true) {
      poller_.wait(-1, [this](int fd, std::uint32_t) {
        if (fd == listener_) {
          accept_all();
        } else {
          serve(fd);
        }
      });
      for (const int fd : ended_) close(fd);
      ended_.clear();
    }
  }

 private:
  void accept_all() {
    int fd = -1;
    while ((fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
      send_at_once(fd);
      downloads_[static_cast<std::size_t>(fd)] = false;
      poller_.add(fd);
    }
  }

  void serve(int fd) {
    char asked[64];
    ssize_t got = 0;
    while ((got = recv(fd, asked, sizeof(asked), 0)) > 0) {
      if (asked[0] == ask_download) {
        downloads_[static_cast<std::size_t>(fd)] = true;
      } else if (send(fd, asked, static_cast<std::size_t>(got), MSG_NOSIGNAL) < 0) {
        return leave(fd);
      }
    }
    if (got == 0 || !would_block()) return leave(fd);
    if (downloads_[static_cast<std::size_t>(fd)]) fill(fd);
  }

  void fill(int fd) {
    while (send(fd, bytes_.data(), bytes_.size(), MSG_NOSIGNAL) >= 0) {
    }
    if (!would_block()) leave(fd);
  }

  void leave(int fd) { ended_.push_back(fd); }

  int listener_;
  Poller poller_;
  std::vector<bool> downloads_;
  std::vector<char> bytes_ = std::vector<char>(1 << 18, 'x');
  std::vector<int> ended_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) stop("usage: origin PORT");
  raise_descriptor_limit();
  Origin(listen_on(parse_port(argv[1]))).run();
}
