#include "sandbox/systemd_scope.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "sandbox/dbus_wire.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint32_t hello_serial = 1;
constexpr std::uint32_t match_serial = 2;
constexpr std::uint32_t start_serial = 3;
constexpr std::size_t most_bytes = 1U << 20U;  // of the whole conversation

std::unexpected<ScopeFailure> no_scope(std::string_view why) {
  return std::unexpected(std::string(why));
}

// ---- what is said -------------------------------------------------------------------------------

std::string authentication() {
  std::string hex;
  for (const char digit : std::to_string(::getuid())) {
    hex += format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(digit)));
  }
  return std::string(1, '\0') + format("AUTH EXTERNAL {}\r\nBEGIN\r\n", hex);
}

std::string bus_call(std::string_view member, std::string_view signature, std::string_view body,
                     std::uint32_t serial) {
  return encode({.destination = "org.freedesktop.DBus",
                 .path = "/org/freedesktop/DBus",
                 .interface = "org.freedesktop.DBus",
                 .member = member,
                 .signature = signature,
                 .body = body,
                 .serial = serial});
}

std::string hello_call() { return bus_call("Hello", {}, {}, hello_serial); }

// systemd tells the whole bus of the end of a job. Asked for before there is one.
std::string match_call() {
  DbusWriter body;
  body.string(
      "type='signal',sender='org.freedesktop.systemd1',"
      "interface='org.freedesktop.systemd1.Manager',member='JobRemoved'");
  return bus_call("AddMatch", "s", body.bytes(), match_serial);
}

// StartTransientUnit(name, mode, properties a(sv), auxiliary units a(sa(sv))).
std::string start_call(std::string_view unit) {
  DbusWriter body;
  body.string(unit).string("fail");
  const auto properties = body.begin_array(8);
  body.structure().string("Description").signature("s").string("capgate run");
  body.structure().string("Delegate").signature("b").boolean(true);
  // Without it a scope in which something was killed for its memory would stay as a failed unit.
  body.structure().string("CollectMode").signature("s").string("inactive-or-failed");
  body.structure().string("PIDs").signature("au");
  const auto pids = body.begin_array(4);
  body.uint32(static_cast<std::uint32_t>(::getpid())).end_array(pids).end_array(properties);
  body.end_array(body.begin_array(8));
  return encode({.destination = "org.freedesktop.systemd1",
                 .path = "/org/freedesktop/systemd1",
                 .interface = "org.freedesktop.systemd1.Manager",
                 .member = "StartTransientUnit",
                 .signature = "ssa(sv)a(sa(sv))",
                 .body = body.bytes(),
                 .serial = start_serial});
}

// ---- the conversation ---------------------------------------------------------------------------

class Conversation {
 public:
  explicit Conversation(Clock::time_point deadline) : deadline_(deadline) {}

  std::expected<void, ScopeFailure> start(const std::string& bus, std::string_view unit) {
    if (auto open = connect(bus); !open) return open;
    if (auto sent = send(authentication()); !sent) return sent;
    if (auto accepted = read_acceptance(); !accepted) return accepted;
    if (auto sent = send(hello_call() + match_call() + start_call(unit)); !sent) return sent;
    return wait_for_job(unit);
  }

 private:
  // A bus whose queue of connections is full does not make us wait: the socket is non-blocking.
  std::expected<void, ScopeFailure> connect(const std::string& bus) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (bus.size() >= sizeof(address.sun_path)) return no_scope("the session bus's path is long");
    std::memcpy(address.sun_path, bus.data(), bus.size());
    socket_ = sys::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (socket_.get() < 0 || ::connect(socket_.get(), generic, sizeof(address)) != 0) {
      return no_scope(format("the session bus cannot be reached: {}", std::strerror(errno)));
    }
    return {};
  }

  std::expected<void, ScopeFailure> wait(short events) const {
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now()).count();
      if (left <= 0) return no_scope("the session bus did not answer in time");
      pollfd poll{socket_.get(), events, 0};
      const int ready = ::poll(&poll, 1, static_cast<int>(left));
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return no_scope(std::strerror(errno));
    }
  }

  std::expected<void, ScopeFailure> send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        if (auto ready = wait(POLLOUT); !ready) return ready;
      } else if (errno != EINTR) {
        return no_scope(format("the session bus: {}", std::strerror(errno)));
      }
    }
    return {};
  }

  std::expected<void, ScopeFailure> receive() {
    if (auto ready = wait(POLLIN); !ready) return ready;
    char bytes[4096];
    const ssize_t size = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (size <= 0) return no_scope("the session bus closed the connection");
    received_.append(bytes, static_cast<std::size_t>(size));
    total_ += static_cast<std::size_t>(size);
    if (total_ > most_bytes) return no_scope("the session bus says too much");
    return {};
  }

  std::expected<void, ScopeFailure> read_acceptance() {
    std::size_t end = 0;
    while ((end = received_.find("\r\n")) == std::string::npos) {
      if (auto more = receive(); !more) return more;
    }
    if (!received_.starts_with("OK ")) return no_scope("the session bus refuses this user");
    received_.erase(0, end + 2);
    return {};
  }

  std::expected<void, ScopeFailure> wait_for_job(std::string_view unit) {
    for (;;) {
      const auto read = decode(received_);
      if (!read && read.error() == DbusFault::malformed) {
        return no_scope("the session bus does not follow its protocol");
      }
      if (!read) {
        if (auto more = receive(); !more) return more;
        continue;
      }
      const DbusMessage& message = read->message;
      if (message.type == DbusMessage::Type::error) return refusal_of(message);
      if (const auto result = result_of(message, unit)) {
        if (*result == "done") return {};
        return no_scope(format("systemd could not start the scope: {}",
                               escape_for_terminal(std::string(*result))));
      }
      received_.erase(0, read->size);
    }
  }

  static std::unexpected<ScopeFailure> refusal_of(const DbusMessage& message) {
    return no_scope(
        format("systemd gives no scope: {}", escape_for_terminal(std::string(message.error))));
  }

  // JobRemoved(id, job, unit, result).
  static std::optional<std::string_view> result_of(const DbusMessage& message,
                                                   std::string_view unit) {
    if (message.type != DbusMessage::Type::signal || message.member != "JobRemoved" ||
        message.signature != "uoss") {
      return std::nullopt;
    }
    DbusReader body(message.body);
    if (!body.uint32() || !body.string() || body.string() != unit) return std::nullopt;
    return body.string();
  }

  Clock::time_point deadline_;
  sys::Fd socket_;
  std::string received_;
  std::size_t total_ = 0;
};

// ---- what came of it ----------------------------------------------------------------------------

// Random, so that no unit of an earlier process of this number is in the way.
std::string unit_name() {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) random = 0;
  return format("run-capgate-{}-{:08x}.scope", ::getpid(), random);
}

// The kernel's own word: this process is in the scope, whatever a bus says.
std::expected<std::string, ScopeFailure> own_scope(std::string_view unit) {
  const std::string table = sys::read_file("/proc/self/cgroup", 65536).value_or("");
  for (const std::string_view line : split(table, '\n')) {
    if (line.starts_with("0::") && line.ends_with(format("/{}", unit))) {
      return format("/sys/fs/cgroup{}", line.substr(3));
    }
  }
  return no_scope("systemd moved nothing into the scope");
}

bool write_small(const std::string& path, std::string_view text) {
  const sys::Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.get() >= 0 &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// A cgroup with processes cannot have limited children, so this process makes room. One controller
// at a time: those that are not delegated are missing, and the others are there.
std::expected<void, ScopeFailure> make_room(const std::string& scope) {
  const std::string own = scope + "/supervisor";
  if (::mkdir(own.c_str(), 0700) != 0 || !write_small(own + "/cgroup.procs", "0")) {
    return no_scope(format("the scope is not delegated: {}", std::strerror(errno)));
  }
  for (const std::string_view controller : {"+memory", "+pids", "+cpu"}) {
    (void)write_small(scope + "/cgroup.subtree_control", controller);
  }
  return {};
}

}  // namespace

std::optional<std::string> bus_path(std::string_view address) {
  for (const std::string_view one : split(address, ';')) {
    constexpr std::string_view transport = "unix:";
    if (!one.starts_with(transport)) continue;
    for (const std::string_view option : split(one.substr(transport.size()), ',')) {
      constexpr std::string_view key = "path=";
      // An escaped path is nobody's runtime directory.
      if (!option.starts_with(key) || option.contains('%')) continue;
      return std::string(option.substr(key.size()));
    }
  }
  return std::nullopt;
}

std::optional<std::string> session_bus() {
  if (const char* address = std::getenv("DBUS_SESSION_BUS_ADDRESS")) return bus_path(address);
  if (const char* directory = std::getenv("XDG_RUNTIME_DIR")) return format("{}/bus", directory);
  return format("/run/user/{}/bus", ::getuid());
}

std::expected<std::string, ScopeFailure> join_systemd_scope(const std::string& bus,
                                                            milliseconds patience) {
  const std::string unit = unit_name();
  if (auto started = Conversation(Clock::now() + patience).start(bus, unit); !started) {
    return std::unexpected(std::move(started).error());
  }
  auto scope = own_scope(unit);
  if (!scope) return scope;
  if (auto made = make_room(*scope); !made) return std::unexpected(std::move(made).error());
  return scope;
}

}  // namespace capgate::sandbox
