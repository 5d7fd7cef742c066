// Clients of a relay that intercepts TLS, all in one thread; prints one line of JSON.
//
//   tls_load rate PROXY ORIGIN AUTHORITY TOKEN CLIENTS SECONDS
//       requests a second, each client on one connection that it keeps
//   tls_load handshake PROXY ORIGIN AUTHORITY TOKEN CLIENTS SECONDS
//       connections a second: open, full handshake, one request, close
//   tls_load probe PROXY ORIGIN AUTHORITY TOKEN
//       one request for /probe; tells what was agreed on
//
// PROXY is connect:PORT or direct:PORT; ORIGIN is a port; both on localhost. Every certificate is
// verified against AUTHORITY (PEM) and the name localhost. TOKEN is what the requests have as their
// bearer token: a placeholder, never a secret.
#include <chrono>
#include <csignal>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tls.h"

namespace {

using namespace capgate::bench;
using Clock = std::chrono::steady_clock;

constexpr auto longest_wait = std::chrono::seconds(30);
constexpr auto warm_up = std::chrono::milliseconds(300);

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Target {
  sockaddr_in address{};
  std::string opening;  // CONNECT and its fields; empty without a proxy
  std::string request;
};

Target parse_target(std::string_view proxy, std::uint16_t origin, std::string_view token,
                    std::string_view path) {
  const auto colon = proxy.find(':');
  if (colon == proxy.npos) stop("not a proxy: {}", proxy);
  const std::string_view kind = proxy.substr(0, colon);
  if (kind != "connect" && kind != "direct") stop("not a proxy: {}", proxy);
  const std::string place = fmt::format("{}:{}", tls_host, origin);
  Target target{.address = loopback(parse_port(proxy.substr(colon + 1)))};
  if (kind == "connect") {
    target.opening = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", place);
  }
  target.request = fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: load\r\nAccept: */*\r\n"
      "Authorization: Bearer {}\r\n\r\n",
      path, place, token);
  return target;
}

enum class State : unsigned char { connects, awaits_tunnel, shakes_hands, awaits_answer };

struct Client {
  State state = State::connects;
  Tls tls;
  std::string head;      // of the answer, as far as it has come
  std::size_t rest = 0;  // of its body
};

// The length of the body; ends the program at an answer that is not the one asked for.
std::size_t parse_length(std::string_view head) {
  if (!head.starts_with("HTTP/1.1 200 ")) stop("answered: {}", head.substr(0, head.find('\r')));
  constexpr std::string_view names[] = {"\r\nContent-Length: ", "\r\ncontent-length: "};
  for (const std::string_view name : names) {
    const auto at = head.find(name);
    if (at == head.npos) continue;
    const std::string_view digits = head.substr(at + name.size());
    return parse_number(digits.substr(0, digits.find('\r')), 1 << 20);
  }
  stop("an answer without a length");
}

class Clients {
 public:
  Clients(Target target, TlsContext context)
      : target_(std::move(target)), context_(std::move(context)), clients_(wanted_descriptors) {}

  std::function<void(int fd)> on_answer;

  void open() {
    const int fd = start_connecting(target_.address);
    if (fd < 0) stop("connect: {}", strerror(errno));
    client(fd) = {};
    poller_.add(fd, EPOLLOUT);
  }

  void ask(int fd) {
    ERR_clear_error();
    const auto size = static_cast<int>(target_.request.size());
    if (SSL_write(tls(fd), target_.request.data(), size) != size) stop("ask: {}", tls_error());
    client(fd).state = State::awaits_answer;
    client(fd).head.clear();
    client(fd).rest = 0;
  }

  void leave(int fd) {
    ERR_clear_error();
    SSL_shutdown(tls(fd));
    client(fd) = {};
    close(fd);
  }

  void wait() {
    bool any = false;
    poller_.wait(static_cast<int>(std::chrono::milliseconds(longest_wait).count()),
                 [&](int fd, std::uint32_t) {
                   any = true;
                   serve(fd);
                 });
    if (!any) stop("the relay does not answer any more");
  }

  SSL* tls(int fd) { return client(fd).tls.get(); }

 private:
  Client& client(int fd) { return clients_[static_cast<std::size_t>(fd)]; }

  void serve(int fd) {
    switch (client(fd).state) {
      case State::connects: return speak(fd);
      case State::awaits_tunnel: return read_opening(fd);
      case State::shakes_hands: return shake_hands(fd);
      case State::awaits_answer: return read_answer(fd);
    }
  }

  void speak(int fd) {
    poller_.change(fd, EPOLLIN);
    if (target_.opening.empty()) return begin_tls(fd);
    client(fd).state = State::awaits_tunnel;
    if (send(fd, target_.opening.data(), target_.opening.size(), MSG_NOSIGNAL) < 0) {
      stop("send: {}", strerror(errno));
    }
  }

  // Nothing follows it before the client speaks again, so all that is there belongs to it.
  void read_opening(int fd) {
    char bytes[1024];
    const ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
    if (got < 0 && would_block()) return;
    if (got <= 0) stop("the relay ended a connection: {}", got < 0 ? strerror(errno) : "closed");
    std::string& head = client(fd).head;
    head.append(bytes, static_cast<std::size_t>(got));
    if (!head.ends_with("\r\n\r\n")) return;
    if (head.find(" 200 ") > 12) stop("the relay refused: {}", head.substr(0, 60));
    begin_tls(fd);
  }

  void begin_tls(int fd) {
    client(fd).state = State::shakes_hands;
    client(fd).tls = make_client(context_.get(), fd);
    shake_hands(fd);
  }

  void shake_hands(int fd) {
    ERR_clear_error();
    const int done = SSL_do_handshake(tls(fd));
    if (done == 1) return ask(fd);
    if (SSL_get_error(tls(fd), done) != SSL_ERROR_WANT_READ) stop("handshake: {}", tls_error());
  }

  void read_answer(int fd) {
    char bytes[16384];
    ERR_clear_error();
    const int got = SSL_read(tls(fd), bytes, sizeof(bytes));
    if (got <= 0) {
      if (SSL_get_error(tls(fd), got) == SSL_ERROR_WANT_READ) return;  // a session ticket
      stop("a connection ended: {}", tls_error());
    }
    if (take({bytes, static_cast<std::size_t>(got)}, client(fd))) return on_answer(fd);
    // Level-triggered: what OpenSSL has already read would not be told of again.
    if (SSL_has_pending(tls(fd)) != 0) read_answer(fd);
  }

  // True: the answer is complete.
  static bool take(std::string_view bytes, Client& client) {
    if (client.rest == 0) {
      client.head.append(bytes);
      const auto blank = client.head.find("\r\n\r\n");
      if (blank == std::string::npos) return false;
      const std::size_t length = parse_length(std::string_view(client.head).substr(0, blank + 2));
      bytes = std::string_view(client.head).substr(blank + 4);
      client.rest = length;
    }
    if (bytes.size() > client.rest) stop("an answer that nobody asked for");
    client.rest -= bytes.size();
    return client.rest == 0;
  }

  Target target_;
  TlsContext context_;
  Poller poller_;
  std::vector<Client> clients_;
};

enum class After : unsigned char { asks_again, opens_anew };

void measure(Clients& clients, After after, std::size_t count, double seconds) {
  std::size_t answers = 0;
  std::size_t in_all = 0;  // with those that warm up
  clients.on_answer = [&](int fd) {
    ++answers;
    ++in_all;
    if (after == After::asks_again) return clients.ask(fd);
    clients.leave(fd);
    clients.open();
  };
  for (std::size_t i = 0; i < count; ++i) clients.open();
  while (in_all < count) clients.wait();
  const auto start = Clock::now();
  while (Clock::now() - start < warm_up) clients.wait();
  answers = 0;
  const auto begin = Clock::now();
  while (seconds_since(begin) < seconds) clients.wait();
  fmt::print("{{\"rate\":{:.1f},\"opened\":{}}}\n",
             static_cast<double>(answers) / seconds_since(begin), in_all);
}

void probe(Clients& clients) {
  bool answered = false;
  clients.on_answer = [&](int fd) {
    answered = true;
    const SSL* tls = clients.tls(fd);
    fmt::print("{{\"version\":\"{}\",\"cipher\":\"{}\",\"key\":\"{}\"}}\n", SSL_get_version(tls),
               SSL_get_cipher_name(tls),
               EVP_PKEY_get0_type_name(X509_get0_pubkey(SSL_get0_peer_certificate(tls))));
    clients.leave(fd);
  };
  clients.open();
  while (!answered) clients.wait();
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  if (words.size() < 6) {
    stop("usage: tls_load MODE PROXY ORIGIN AUTHORITY TOKEN [CLIENTS SECONDS]");
  }
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  const std::string_view mode = words[1];
  const std::string_view path = mode == "probe" ? "/probe" : "/kilobyte";
  Clients clients(parse_target(words[2], parse_port(words[3]), words[5], path),
                  make_client_context(words[4]));
  if (mode == "probe") {
    probe(clients);
    return 0;
  }
  if (words.size() != 8) stop("the number of clients and of seconds is missing");
  if (mode != "rate" && mode != "handshake") stop("unknown mode: {}", mode);
  measure(clients, mode == "rate" ? After::asks_again : After::opens_anew,
          parse_number(words[6], 10'000), std::strtod(words[7], nullptr));
  return 0;
}
