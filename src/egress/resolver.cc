#include "egress/resolver.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace capgate::egress {
namespace {

constexpr std::size_t most_cached = 1024;
constexpr std::size_t most_addresses = 16;
constexpr int longest_ttl = 60;
constexpr int milliseconds_per_try = 2000;
constexpr int tries = 2;

// One family after the other, so that a host whose IPv6 leads nowhere costs one attempt.
std::vector<Address> interleave(const std::vector<Address>& addresses) {
  std::vector<Address> families[2];
  for (const Address& address : addresses) families[address.ipv6 ? 0 : 1].push_back(address);
  std::vector<Address> out;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    for (const auto& family : families) {
      if (i < family.size()) out.push_back(family[i]);
    }
  }
  return out;
}

std::vector<Address> addresses_of(const ares_addrinfo& info, int& ttl) {
  std::vector<Address> out;
  for (const auto* node = info.nodes; node != nullptr && out.size() < most_addresses;
       node = node->ai_next) {
    if (node->ai_family == AF_INET) {
      out.push_back(Address::of_ipv4(&reinterpret_cast<sockaddr_in*>(node->ai_addr)->sin_addr));
    } else if (node->ai_family == AF_INET6) {
      out.push_back(Address::of_ipv6(&reinterpret_cast<sockaddr_in6*>(node->ai_addr)->sin6_addr));
    }
    ttl = std::min(ttl, node->ai_ttl);
  }
  return interleave(out);
}

}  // namespace

Resolver::Resolver(Loop& loop, NameServers where)
    : loop_(loop),
      where_(std::move(where)),
      look_(loop.every([this](Time now) { return look(now); })) {}

// c-ares repeats its questions when it is asked to look at the time.
Time Resolver::look(Time now) {
  if (channel_ != nullptr && !asked_.empty()) {
    ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  }
  deliver();
  return asked_.empty() ? never : now + std::chrono::milliseconds(100);
}

Resolver::~Resolver() { cancel(); }

Resolver::FileState Resolver::state_of(const char* path) {
  struct stat info{};
  if (::stat(path, &info) != 0) return {};
  return {.changed = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec,
          .inode = info.st_ino};
}

void Resolver::follow_files() {
  const FileState servers = state_of(where_.file.c_str());
  const FileState hosts = state_of("/etc/hosts");
  if (channel_ != nullptr && servers == servers_ && hosts == hosts_) return;
  // Those who wait for the old servers get nothing, as if these had gone.
  close_channel();
  cache_.clear();
  servers_ = servers;
  hosts_ = hosts;
  open_channel();
}

void Resolver::open_channel() {
  ares_options options{};
  options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS;
  // ares_getaddrinfo searches in spite of NOSEARCH, but not without domains.
  options.ndomains = 0;
  options.timeout = milliseconds_per_try;
  options.tries = tries;
  options.ednspsz = 1232;
  options.sock_state_cb = on_socket;
  options.sock_state_cb_data = this;
  options.resolvconf_path = where_.file.data();
  options.udp_port = options.tcp_port = where_.port;
  constexpr int set = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_EDNSPSZ |
                      ARES_OPT_SOCK_STATE_CB | ARES_OPT_DOMAINS | ARES_OPT_RESOLVCONF |
                      ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT;
  if (ares_init_options(&channel_, &options, set) != ARES_SUCCESS) channel_ = nullptr;
}

void Resolver::close_channel() {
  if (channel_ != nullptr) ares_destroy(std::exchange(channel_, nullptr));
  sockets_.clear();
}

void Resolver::cancel() {
  close_channel();
  deliver();
}

// c-ares closes its own descriptor; this is a duplicate of it, so it must be taken out of the epoll
// set before.
void Resolver::on_socket(void* self, ares_socket_t fd, int readable, int writable) {
  auto& resolver = *static_cast<Resolver*>(self);
  auto& sockets = resolver.sockets_;
  const auto known = sockets.find(fd);
  const std::uint32_t events = (readable != 0 ? EPOLLIN : 0U) | (writable != 0 ? EPOLLOUT : 0U);
  if (events == 0) {
    if (known == sockets.end()) return;
    resolver.loop_.remove(*known->second);
    sockets.erase(known);
  } else if (known != sockets.end()) {
    resolver.loop_.set_events(*known->second, events);
  } else {
    auto socket = resolver.loop_.adopt(sys::Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)), events);
    if (!socket) return;
    socket->owner = &resolver;
    sockets.emplace(fd, std::move(socket));
  }
}

void Resolver::on_event(Socket& socket) {
  const auto entry = std::ranges::find_if(
      sockets_, [&](const auto& known) { return known.second.get() == &socket; });
  if (entry == sockets_.end()) return;
  const ares_socket_t fd = entry->first;
  const ares_socket_t read = socket.is_readable ? fd : ARES_SOCKET_BAD;
  const ares_socket_t write = socket.is_writable ? fd : ARES_SOCKET_BAD;
  socket.is_readable = socket.is_writable = false;
  ares_process_fd(channel_, read, write);
  deliver();
}

// Within c-ares: nobody is resumed here, since that could call c-ares again.
void Resolver::on_answer(void* context, int status, int /*timeouts*/, ares_addrinfo* info) {
  auto& query = *static_cast<Query*>(context);
  query.is_done = true;
  query.ttl = longest_ttl;
  if (status == ARES_SUCCESS && info != nullptr) {
    query.result.addresses = addresses_of(*info, query.ttl);
  }
  if (info != nullptr) ares_freeaddrinfo(info);
  if (query.result.addresses.empty()) {
    query.result.why = status == ARES_SUCCESS ? "it has no address" : ares_strerror(status);
  }
  auto& asked = query.resolver->asked_;
  const auto entry = asked.find(query.name);
  query.resolver->answered_.push_back(entry->second);
  asked.erase(entry);
}

// Whoever is resumed may ask again, and so end the questions of others: files that changed close
// the channel.
void Resolver::deliver() {
  while (!answered_.empty()) {
    for (const auto& query : std::exchange(answered_, {})) {
      if (!query->result.addresses.empty() && query->ttl > 0) {
        if (cache_.size() >= most_cached) cache_.clear();
        cache_[query->name] = {query->result, loop_.now() + std::chrono::seconds(query->ttl)};
      }
      for (const auto coroutine : std::exchange(query->waiting, {})) coroutine.resume();
    }
  }
}

std::shared_ptr<Resolver::Query> Resolver::ask(const std::string& name) {
  if (const auto entry = asked_.find(name); entry != asked_.end()) return entry->second;
  auto query = std::make_shared<Query>();
  query->name = name;
  query->resolver = this;
  if (channel_ == nullptr) {
    query->is_done = true;
    query->result.why = "this host's resolver cannot be used";
    return query;
  }
  asked_.emplace(name, query);
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = ARES_AI_NOSORT;
  // May answer at once, from the hosts file.
  ares_getaddrinfo(channel_, name.c_str(), nullptr, &hints, on_answer, query.get());
  loop_.call_soon(look_);
  return query;
}

Resolver::Lookup Resolver::resolve(const std::string& name) {
  follow_files();
  const auto cached = cache_.find(name);
  if (cached != cache_.end() && cached->second.until > loop_.now()) {
    auto query = std::make_shared<Query>();
    query->is_done = true;
    query->result = cached->second.result;
    return Lookup(std::move(query));
  }
  return Lookup(ask(name));
}

}  // namespace capgate::egress
