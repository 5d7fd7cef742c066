// Names to addresses, asked outside, with this host's resolv.conf and hosts as they are now.
//
//   const Resolved resolved = co_await resolver.resolve("api.github.com");
//   resolved.addresses   in the order in which to try them; empty: resolved.why says why
//
// Names that are asked for at once are asked once; answers are kept for as long as their owner
// said, at most a minute, and dropped when resolv.conf or hosts change. No search domain is ever
// added.
#pragma once

#include <ares.h>

#include <coroutine>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "egress/address.h"
#include "egress/loop.h"

namespace capgate::egress {

struct Resolved {
  std::vector<Address> addresses;
  std::string why;
};

// Where the servers' addresses are written, and the port where they listen.
struct NameServers {
  std::string file = "/etc/resolv.conf";
  std::uint16_t port = 53;
};

class Resolver final : public Owner {
 public:
  explicit Resolver(Loop& loop, NameServers where = {});
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  Resolver(Resolver&&) = delete;
  Resolver& operator=(Resolver&&) = delete;
  ~Resolver() override;

  class Lookup;
  [[nodiscard]] Lookup resolve(const std::string& name);
  // Wakes everybody who waits, with nothing.
  void cancel();

  void on_event(Socket& socket) override;

 private:
  struct Query {
    std::string name;
    bool is_done = false;
    int ttl = 0;
    Resolved result;
    std::vector<std::coroutine_handle<>> waiting;
    Resolver* resolver = nullptr;
  };
  struct Cached {
    Resolved result;
    Time until;
  };
  struct FileState {
    std::int64_t changed = -1;
    std::uint64_t inode = 0;
    friend bool operator==(const FileState&, const FileState&) = default;
  };

  static void on_answer(void* query, int status, int timeouts, ares_addrinfo* info);
  static void on_socket(void* self, ares_socket_t fd, int readable, int writable);
  [[nodiscard]] static FileState state_of(const char* path);

  [[nodiscard]] Time look(Time now);
  void follow_files();
  void open_channel();
  void close_channel();
  [[nodiscard]] std::shared_ptr<Query> ask(const std::string& name);
  void deliver();

  Loop& loop_;
  NameServers where_;
  Loop::LookId look_;
  ares_channel channel_ = nullptr;
  FileState servers_;
  FileState hosts_;
  std::map<ares_socket_t, SocketPtr> sockets_;
  std::map<std::string, std::shared_ptr<Query>, std::less<>> asked_;
  std::map<std::string, Cached, std::less<>> cache_;
  std::vector<std::shared_ptr<Query>> answered_;
};

class [[nodiscard]] Resolver::Lookup {
 public:
  [[nodiscard]] bool await_ready() const { return query_->is_done; }
  void await_suspend(std::coroutine_handle<> coroutine) { query_->waiting.push_back(coroutine); }
  [[nodiscard]] Resolved await_resume() const { return query_->result; }

 private:
  friend class Resolver;
  explicit Lookup(std::shared_ptr<Query> query) : query_(std::move(query)) {}
  std::shared_ptr<Query> query_;
};

}  // namespace capgate::egress
