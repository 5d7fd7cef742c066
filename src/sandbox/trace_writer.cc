#include "sandbox/trace_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/path.h"
#include "lower/common.h"
#include "sandbox/host_path.h"
#include "sandbox/landlock.h"
#include "sandbox/stderr_copy.h"

namespace capgate::sandbox {
namespace {

constexpr std::size_t most_notes = 100'000;
constexpr std::size_t most_pending = 16U << 20U;
constexpr std::size_t most_lines = 10000;
constexpr int patience = 5000;  // milliseconds, for the rest at the end

bool exists(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

// To make, remove or rename an entry is to write its directory.
std::string capability_for(const std::string& path, bool writes, bool changes_entry) {
  if (path == "/etc/localtime" || core::is_at_or_below(path, "/usr/share/zoneinfo")) {
    return "clock:tzdata";
  }
  if (!writes) return format("fs:read:{}", path);
  return changes_entry ? format("fs:write:{}/**", path.substr(0, path.rfind('/')))
                       : format("fs:write:{}", path);
}

std::string name_of(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// A program elsewhere, which the server may have named after one of the host's, is another one.
bool is_found_by_name(std::string_view path) {
  return contains(split(lower::sandbox_path, ':'), parent_of(path));
}

// ---- in the writer's process --------------------------------------------------------------------

class Lines {
 public:
  Lines(const TraceWriter::Known& known, int output)
      : bound_(known.bound), lacking_(known.lacking), output_(output) {}

  void look(const TraceNote& note) {
    switch (note.kind) {
      case TraceNote::Kind::path: return look_at_path(note);
      case TraceNote::Kind::program: return look_at_program(note.path);
      case TraceNote::Kind::socket:
        if (!note.is_inside && exists(note.path)) {
          say("connect", note.path, format("ipc:connect:unix:{}", note.path));
        }
        return;
      case TraceNote::Kind::line: {
        const auto parts = split(note.path, '\n');
        if (parts.size() == 3) say(parts[0], parts[1], std::string(parts[2]));
        return;
      }
    }
  }

 private:
  void look_at_path(const TraceNote& note) {
    const std::string& path = note.path;
    // What the host does not have either is no refusal; a new file needs its directory.
    const bool is_there = exists(path);
    if (!is_there && !(note.writes && exists(format("{}/", parent_of(path))))) return;
    if (note.writes ? may_write(path) : note.is_inside) return;
    // Whoever looks for a program means to start it; to read it alone would not help.
    const bool is_program =
        !note.writes && is_found_by_name(path) && ::access(path.c_str(), X_OK) == 0;
    say(note.writes ? "write" : "read", path,
        is_program ? format("exec:spawn:{}", name_of(path))
                   : capability_for(path, note.writes, note.changes_entry));
  }

  [[nodiscard]] bool may_write(const std::string& path) const {
    const std::uint64_t write = landlock_access({"write_file"}, 1);
    const bool allowed = std::ranges::any_of(bound_.landlock, [&](const BoundRule& rule) {
      return (rule.access & write) != 0 && core::is_at_or_below(path, rule.path);
    });
    return allowed && std::ranges::none_of(bound_.mounts, [&](const BoundMount& mount) {
             const bool protects =
                 mount.kind == orders::MountKind::pin || mount.kind == orders::MountKind::cover;
             constexpr std::uint64_t read_only = 1;
             return protects && (mount.attributes & read_only) != 0 &&
                    core::is_at_or_below(path, mount.target);
           });
  }

  void look_at_program(const std::string& path) {
    if (!exists(path)) return;
    const std::string real = read_link(AT_FDCWD, path);
    const bool may_run = std::ranges::any_of(bound_.executables, [&](const std::string& known) {
      return core::is_at_or_below(path, known) || core::is_at_or_below(real, known);
    });
    if (may_run) return;
    say("run", path, is_found_by_name(path) ? format("exec:spawn:{}", name_of(path)) : "");
  }

  // Each line once, and a suggestion only if it is one.
  void say(std::string_view what, std::string_view subject, const std::string& capability) {
    const bool is_example = capability == any_program || capability == any_host;
    // The server chooses the names that it tries: one that is a pattern would allow more than it
    // tried.
    const bool is_pattern = subject.find_first_of("*?[") != std::string_view::npos;
    const bool is_address = what == "connect";
    const bool parses = is_example || ((is_address || !is_pattern) &&
                                       core::parse_capability(capability, {}).has_value());
    const std::string line = format("denied {} {}: {}\n", what, escape_for_terminal(subject),
                                    parses ? escape_for_terminal(as_in_entry(lacking_, capability))
                                           : "no capability can allow it");
    if (said_.size() < most_lines && said_.insert(line).second) {
      if (output_ >= 0 && !write_if_read(output_, line)) output_ = -1;
    }
  }

  const Bound& bound_;
  const Lacking& lacking_;
  int output_;
  std::set<std::string> said_;
};

// Blocks until that many bytes are there; false at the end of the stream.
bool read_whole(int fd, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(fd, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

// On the wire: this, and so many bytes.
struct Head {
  std::uint32_t size = 0;
  TraceNote::Kind kind = TraceNote::Kind::path;
  std::uint8_t writes = 0;
  std::uint8_t changes_entry = 0;
  std::uint8_t is_inside = 0;
};

std::optional<TraceNote> read_note() {
  Head head;
  if (!read_whole(0, reinterpret_cast<char*>(&head), sizeof(head))) return std::nullopt;
  TraceNote note{.kind = head.kind,
                 .writes = head.writes != 0,
                 .changes_entry = head.changes_entry != 0,
                 .is_inside = head.is_inside != 0,
                 .path = std::string(head.size, '\0')};
  if (!read_whole(0, note.path.data(), note.path.size())) return std::nullopt;
  return note;
}

// Everything until the next of the moments at which the host is looked at; false at the end. Were
// it looked at as soon as a note comes, the server would feel this process work beside it, longer
// for what exists.
bool collect(std::vector<TraceNote>& notes) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds interval{250};
  std::optional<Clock::time_point> moment;
  for (;;) {
    int left = -1;
    if (moment) {
      const auto until =
          std::chrono::ceil<std::chrono::milliseconds>(*moment - Clock::now()).count();
      if (until <= 0) return true;
      left = static_cast<int>(until);
    }
    pollfd poll{0, POLLIN, 0};
    if (::poll(&poll, 1, left) <= 0) continue;
    auto note = read_note();
    if (!note) return false;
    notes.push_back(*std::move(note));
    if (!moment) moment = Clock::now() + interval;
  }
}

// It dies with the supervisor, and holds nothing of its but the two ends: whoever waits for the end
// of a stream of the caller's must not wait for this process.
[[noreturn]] void write_lines(const TraceWriter::Known& known, int from, int output, pid_t parent) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  const int first = std::max(from, output) + 1;
  const int own_from = ::fcntl(from, F_DUPFD_CLOEXEC, first);
  const int own_output = ::fcntl(output, F_DUPFD_CLOEXEC, first);
  if (own_from < 0 || own_output < 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 ||
      ::getppid() != parent || ::dup3(own_from, 0, O_CLOEXEC) < 0 ||
      ::dup3(own_output, 1, O_CLOEXEC) < 0 || ::syscall(SYS_close_range, 2, ~0U, 0) != 0) {
    ::_exit(1);
  }
  Lines lines(known, 1);
  for (bool more = true; more;) {
    std::vector<TraceNote> notes;
    more = collect(notes);
    for (const TraceNote& note : notes) lines.look(note);
  }
  ::_exit(0);
}

}  // namespace

TraceWriter::TraceWriter(TraceWriter&& other) noexcept
    : socket_(std::move(other.socket_)),
      pid_(std::exchange(other.pid_, -1)),
      pending_(std::move(other.pending_)),
      noted_(std::move(other.noted_)) {}

std::expected<void, int> TraceWriter::start(const Known& known, const sys::Fd& output) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return std::unexpected(errno);
  }
  socket_ = sys::Fd(pair[0]);
  const sys::Fd inner(pair[1]);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) return std::unexpected(errno);
  if (pid_ == 0) write_lines(known, inner.get(), output.get(), parent);
  return {};
}

// Once for each attempt, and never more than can be kept.
void TraceWriter::note(const TraceNote& note) {
  const Head head{.size = static_cast<std::uint32_t>(note.path.size()),
                  .kind = note.kind,
                  .writes = static_cast<std::uint8_t>(note.writes ? 1 : 0),
                  .changes_entry = static_cast<std::uint8_t>(note.changes_entry ? 1 : 0),
                  .is_inside = static_cast<std::uint8_t>(note.is_inside ? 1 : 0)};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  bytes += note.path;
  const bool has_room = noted_.size() < most_notes && pending_.size() < most_pending;
  if (has_room && noted_.insert(std::hash<std::string>{}(bytes)).second) pending_ += bytes;
  send_some();
}

void TraceWriter::send_some() {
  while (socket_.get() >= 0 && !pending_.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), pending_.data(), pending_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) socket_ = sys::Fd();
    if (sent <= 0) return;
    pending_.erase(0, static_cast<std::size_t>(sent));
  }
}

void TraceWriter::finish() {
  if (pid_ < 0) return;
  while (send_some(), socket_.get() >= 0 && !pending_.empty()) {
    pollfd poll{socket_.get(), POLLOUT, 0};
    if (::poll(&poll, 1, patience) <= 0 && errno != EINTR) break;
  }
  socket_ = sys::Fd();
  // A reader that does not read is given up by the writer itself after half a second.
  const sys::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd poll{process.get(), POLLIN, 0};
  if (process.get() < 0 || ::poll(&poll, 1, patience) <= 0) ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace capgate::sandbox
