// The least that intercepting TLS can cost: one thread, epoll, OpenSSL on both sides, one leaf
// certificate that is ready. No policy, no names, no HTTP, no audit, no limits, no timeouts: never
// a proxy to be used.
//
//   tls_floor PORT LEAF KEY AUTHORITY [resume]     listens on 127.0.0.1; PEM files
//
// With "resume", sessions with the origin are resumed by its tickets, each used once.
// Only "CONNECT localhost:port" that arrives in one segment is understood. The origin's certificate
// is verified against AUTHORITY. Both handshakes run at once; what a client says is held until the
// origin's is over, so nothing goes to an origin that was not verified.
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "tls.h"

namespace {

using namespace capgate::bench;

constexpr std::string_view established = "HTTP/1.1 200 OK\r\n\r\n";
constexpr std::size_t record_bytes = 16384;

enum class State : unsigned char { unused, awaits_head, awaits_origin, dials, relays };

// One end of an intercepted connection; the table of them is indexed by descriptor.
struct End {
  State state = State::unused;
  int peer = -1;
  Tls tls;
  std::string unsent;          // was read from the peer, and this end did not take it yet
  bool reads_to_send = false;  // its handshake is not over: it has to read before it can send
  std::uint32_t interest = 0;
};

// Those that the origin has offered and that were not used yet, the newest last.
class Tickets {
 public:
  static constexpr std::size_t most = 64;

  void collect_from(SSL_CTX* context) {
    need_tls(SSL_CTX_set_ex_data(context, 0, this), "SSL_CTX_set_ex_data");
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, [](SSL* tls, SSL_SESSION* session) {
      auto* self = static_cast<Tickets*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(tls), 0));
      if (self->sessions_.size() == most) return 0;
      self->sessions_.emplace_back(session);
      return 1;  // it is ours now
    });
  }

  void use_one_for(SSL* tls) {
    if (sessions_.empty()) return;
    need_tls(SSL_set_session(tls, sessions_.back().get()), "SSL_set_session");
    sessions_.pop_back();
  }

 private:
  std::vector<std::unique_ptr<SSL_SESSION, FreeTls>> sessions_;
};

class Relay {
 public:
  Relay(int listener, TlsContext inside, TlsContext outside)
      : listener_(listener), inside_(std::move(inside)), outside_(std::move(outside)) {
    ends_.reserve(wanted_descriptors);  // references stay valid; untouched pages cost nothing
    poller_.add(listener_, EPOLLIN);
  }

  void resume() { tickets_.collect_from(outside_.get()); }

  [[noreturn]] void run() {
    while (true) {
      poller_.wait(-1, [this](int fd, std::uint32_t) {
        if (fd == listener_) {
          accept_all();
        } else {
          serve(fd);
        }
      });
      // Only now, so that no event of this round meets a descriptor's next owner.
      for (const int fd : ended_) close(fd);
      ended_.clear();
    }
  }

 private:
  End& end(int fd) { return ends_[static_cast<std::size_t>(fd)]; }

  void open(int fd, State state, std::uint32_t interest) {
    const auto index = static_cast<std::size_t>(fd);
    if (index >= wanted_descriptors) stop("too many descriptors");
    if (index >= ends_.size()) ends_.resize(index + 1);
    ends_[index] = {.state = state, .interest = interest};
    // Level-triggered: reading until it would block is one more call for each message.
    poller_.add(fd, interest);
  }

  void accept_all() {
    int fd = -1;
    while ((fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
      send_at_once(fd);
      open(fd, State::awaits_head, EPOLLIN);
    }
  }

  void serve(int fd) {
    switch (end(fd).state) {
      case State::unused: break;
      case State::awaits_head: read_head(fd); break;
      case State::awaits_origin: forget(fd); break;  // it has no reason to speak yet
      case State::dials: establish(fd); break;
      case State::relays: relay(fd); break;
    }
  }

  void read_head(int fd) {
    char head[1024];
    const ssize_t got = recv(fd, head, sizeof(head), 0);
    if (got < 0 && would_block()) return;
    if (got <= 0) return forget(fd);
    const std::uint16_t port = parse_head({head, static_cast<std::size_t>(got)});
    const int out = port != 0 ? start_connecting(loopback(port)) : -1;
    if (out < 0) return forget(fd);
    open(out, State::dials, EPOLLOUT);
    end(out).peer = fd;
    end(fd).peer = out;
    end(fd).state = State::awaits_origin;
  }

  // 0: not understood.
  static std::uint16_t parse_head(std::string_view head) {
    const std::string method = fmt::format("CONNECT {}:", tls_host);
    if (!head.starts_with(method) || !head.ends_with("\r\n\r\n")) return 0;
    head.remove_prefix(method.size());
    return parse_port(head.substr(0, head.find(' ')));
  }

  void establish(int out) {
    const int client = end(out).peer;
    int error = 0;
    socklen_t size = sizeof(error);
    need(getsockopt(out, SOL_SOCKET, SO_ERROR, &error, &size), "getsockopt");
    if (error != 0 || send(client, established.data(), established.size(), MSG_NOSIGNAL) < 0) {
      return forget(out);
    }
    Tls front(SSL_new(inside_.get()));
    if (front == nullptr) stop("SSL_new: {}", tls_error());
    need_tls(SSL_set_fd(front.get(), client), "SSL_set_fd");
    SSL_set_accept_state(front.get());
    end(client).tls = std::move(front);
    end(out).tls = make_client(outside_.get(), out);
    tickets_.use_one_for(end(out).tls.get());
    end(client).state = end(out).state = State::relays;
    relay(out);
  }

  // Reading and writing also carry the handshakes on.
  void relay(int fd) {
    const int peer = end(fd).peer;
    const bool held_peer_up = !end(fd).unsent.empty();
    if (!flush(fd) || !pump(fd)) return forget(fd);
    if (held_peer_up && end(fd).unsent.empty() && !pump(peer)) return forget(fd);
    watch(fd);
    watch(peer);
  }

  // From one end to its peer, until there is nothing or the peer takes no more. False: over.
  bool pump(int from) {
    const End& source = end(from);
    End& sink = end(source.peer);
    while (sink.unsent.empty()) {
      ERR_clear_error();
      const int got = SSL_read(source.tls.get(), buffer_, sizeof(buffer_));
      if (got <= 0) return SSL_get_error(source.tls.get(), got) == SSL_ERROR_WANT_READ;
      if (!put(sink, {buffer_, static_cast<std::size_t>(got)})) return false;
      if (SSL_has_pending(source.tls.get()) == 0) return true;
    }
    return true;
  }

  bool flush(int fd) {
    End& own = end(fd);
    return own.unsent.empty() || put(own, std::exchange(own.unsent, {}));
  }

  static bool put(End& sink, std::string_view bytes) {
    while (!bytes.empty()) {
      ERR_clear_error();
      const int taken = SSL_write(sink.tls.get(), bytes.data(), static_cast<int>(bytes.size()));
      if (taken <= 0) {
        const int why = SSL_get_error(sink.tls.get(), taken);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return false;
        sink.reads_to_send = why == SSL_ERROR_WANT_READ;
        sink.unsent = bytes;
        return true;
      }
      bytes.remove_prefix(static_cast<std::size_t>(taken));
    }
    return true;
  }

  void watch(int fd) {
    End& own = end(fd);
    const bool has_unsent = !own.unsent.empty();
    std::uint32_t wanted = 0;
    if (end(own.peer).unsent.empty() || (has_unsent && own.reads_to_send)) wanted |= EPOLLIN;
    if (has_unsent && !own.reads_to_send) wanted |= EPOLLOUT;
    if (wanted != own.interest) poller_.change(fd, wanted);
    own.interest = wanted;
  }

  void forget(int fd) {
    for (const int one : {fd, end(fd).peer}) {
      if (one < 0) continue;
      // Tells the peer; who left has no use for it.
      if (one != fd && end(one).tls != nullptr && SSL_is_init_finished(end(one).tls.get()) != 0) {
        ERR_clear_error();
        SSL_shutdown(end(one).tls.get());
      }
      end(one) = {};
      ended_.push_back(one);
    }
  }

  int listener_;
  TlsContext inside_;
  TlsContext outside_;
  Tickets tickets_;
  Poller poller_;
  std::vector<End> ends_;
  std::vector<int> ended_;
  char buffer_[record_bytes] = {};
};

TlsContext make_inside(const char* leaf, const char* key) {
  TlsContext context = make_context(TLS_server_method());
  need_tls(SSL_CTX_use_certificate_chain_file(context.get(), leaf), leaf);
  need_tls(SSL_CTX_use_PrivateKey_file(context.get(), key, SSL_FILETYPE_PEM), key);
  need_tls(SSL_CTX_set_num_tickets(context.get(), 0), "SSL_CTX_set_num_tickets");
  return context;
}

}  // namespace

int main(int argc, char** argv) {
  const bool resumes = argc == 6 && argv[5] == std::string_view("resume");
  if (argc != 5 && !resumes) stop("usage: tls_floor PORT LEAF KEY AUTHORITY [resume]");
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  Relay relay(listen_on(parse_port(argv[1])), make_inside(argv[2], argv[3]),
              make_client_context(argv[4]));
  if (resumes) relay.resume();
  relay.run();
}
