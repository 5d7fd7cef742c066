#include "sandbox/keeper.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <span>

#include "base/format.h"
#include "base/shell.h"
#include "base/text.h"
#include "sandbox/keeping.h"

namespace capgate::sandbox {
namespace {

// ---- in the keeper ------------------------------------------------------------------------------

// Everything but these, which are moved to the lowest numbers. False: errno says why.
bool keep_descriptors(std::span<int* const> wanted) {
  const int above = static_cast<int>(wanted.size());
  for (int* fd : wanted) {
    *fd = ::fcntl(*fd, F_DUPFD_CLOEXEC, above);
    if (*fd < 0) return false;
  }
  for (int i = 0; i < above; ++i) {
    int* fd = wanted[static_cast<std::size_t>(i)];
    if (::dup3(*fd, i, O_CLOEXEC) < 0) return false;
    *fd = i;
  }
  return ::syscall(SYS_close_range, above, ~0U, 0) == 0;
}

// Into every namespace of the sandbox but the one of its processes.
bool enter(int init, const HostUser& user) {
  constexpr int spaces =
      CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  if (user.leaves_root && ::setgroups(0, nullptr) != 0) return false;
  if (::setns(init, spaces) != 0) return false;
  const std::uint32_t id = user.inside;
  return ::syscall(SYS_setresgid, id, id, id) == 0 && ::syscall(SYS_setresuid, id, id, id) == 0;
}

bool keep_one_capability() {
  __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  data[CAP_SYS_ADMIN / 32].permitted = data[CAP_SYS_ADMIN / 32].effective = 1U
                                                                            << (CAP_SYS_ADMIN % 32);
  return ::syscall(SYS_capset, &head, data) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// Woken, it is to run before a server that computes: since Linux 6.12 whoever asks for short slices
// does. Where that is not to be had it is only slower.
void ask_for_short_slices() {
  struct {
    std::uint32_t size = 48;
    std::uint32_t policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 100'000;  // nanoseconds, the least
    std::uint64_t deadline = 0;
    std::uint64_t period = 0;
  } wanted;
  wanted.nice = ::getpriority(PRIO_PROCESS, 0);
  (void)::syscall(SYS_sched_setattr, 0, &wanted, 0);
}

[[noreturn]] void run(Keeping::Descriptors descriptors, int init, Watched& watched,
                      const HostUser& user, pid_t parent) {
  const auto must = [&](bool done, std::string_view what) {
    if (!done) Keeping::fail(descriptors.reports, format("{}: {}", what, std::strerror(errno)));
  };
  // Its number is about to be another's.
  descriptors.events = ::fcntl(watched.events.get(), F_DUPFD_CLOEXEC, 3);
  watched.events = sys::Fd();
  std::vector<int*> wanted = {&descriptors.events, &descriptors.reports};
  if (init >= 0)
    wanted.insert(wanted.end(), {&descriptors.covers[0], &descriptors.covers[1], &init});
  must(keep_descriptors(wanted), "descriptors");
  if (init >= 0) {
    if (!enter(init, user)) {
      Keeping::fail(descriptors.reports,
                    format("the keeper cannot enter the sandbox: {}", std::strerror(errno)),
                    Kept::Kind::not_inside);
    }
    ::close(init);
    must(keep_one_capability(), "capabilities");
  }
  // Both are reset by a change of ids.
  must(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "dumpable");
  must(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0, "death signal");
  ask_for_short_slices();
  Keeping keeping(descriptors, watched);
  keeping.run(parent);
}

}  // namespace

// ---- in the supervisor
// ----------------------------------------------------------------------------

void Keeper::take_cover(std::size_t index, sys::Fd cover) {
  if (index < covers_.size()) covers_[index] = std::move(cover);
}

bool Keeper::is_ready() const {
  return watched_.is_needed() &&
         std::ranges::all_of(covers_, [](const sys::Fd& each) { return each.get() >= 0; });
}

int Keeper::fd() const {
  if (pid_ > 0) return reports_.get();
  return is_ready() ? watched_.events.get() : -1;
}

std::expected<void, std::string> Keeper::start(int init) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::unexpected(format("no keeper: {}", std::strerror(errno)));
  }
  reports_ = sys::Fd(ends[0]);
  const sys::Fd inner(ends[1]);
  Keeping::Descriptors descriptors{.events = watched_.events.get(), .reports = inner.get()};
  if (init >= 0) descriptors.covers = {covers_[0].get(), covers_[1].get()};
  const pid_t self = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) return std::unexpected(format("no keeper: {}", std::strerror(errno)));
  if (pid_ == 0) run(descriptors, init, watched_, user_, self);
  for (sys::Fd& cover : covers_) cover = sys::Fd();
  return {};
}

std::expected<std::vector<Kept>, std::string> Keeper::step(int init) {
  std::vector<Kept> out;
  if (pid_ < 0) {
    if (!is_ready()) return out;
    if (auto started = start(init); !started) return std::unexpected(std::move(started).error());
    return out;
  }
  auto reports = read_reports();
  if (reports && reports_.get() < 0) return std::unexpected("the keeper ended");
  return reports;
}

// All that are there now. At the end of the stream reports_ is closed.
std::expected<std::vector<Kept>, std::string> Keeper::read_reports() {
  std::vector<Kept> out;
  char buffer[16384];
  for (;;) {
    const ssize_t size = ::recv(reports_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return out;
    if (size <= 0) {
      reports_ = sys::Fd();
      return out;
    }
    Kept kept = Keeping::read_report({buffer, static_cast<std::size_t>(size)});
    if (kept.kind == Kept::Kind::failed || kept.kind == Kept::Kind::not_inside) {
      is_outside_ = kept.kind == Kept::Kind::not_inside;
      reports_ = sys::Fd();
      return std::unexpected(std::move(kept.why));
    }
    out.push_back(std::move(kept));
  }
}

std::expected<std::vector<Kept>, std::string> Keeper::finish() {
  std::vector<Kept> out;
  if (pid_ > 0) {
    auto done = finish_process(out);
    if (done) return out;
    if (!is_outside_) return std::unexpected(std::move(done).error());
  }
  // There was none, or the sandbox ended before it could be entered: no event was read.
  pollfd poll{watched_.events.get(), POLLIN, 0};
  if (!watched_.is_needed() || ::poll(&poll, 1, 0) <= 0) return out;
  is_outside_ = false;
  auto done = start(-1);
  if (done) done = finish_process(out);
  if (!done) return std::unexpected(std::move(done).error());
  return out;
}

std::expected<void, std::string> Keeper::finish_process(std::vector<Kept>& out) {
  // No more is to come: it looks once more and ends.
  if (reports_.get() >= 0) ::shutdown(reports_.get(), SHUT_WR);
  constexpr int patience = 5000;
  std::expected<void, std::string> result;
  while (reports_.get() >= 0) {
    pollfd poll{reports_.get(), POLLIN, 0};
    const int ready = ::poll(&poll, 1, patience);
    if (ready < 0 && errno == EINTR) continue;
    auto reports = ready > 0 ? read_reports() : std::unexpected("the keeper does not end");
    if (!reports) {
      result = std::unexpected(std::move(reports).error());
      break;
    }
    std::ranges::move(*reports, std::back_inserter(out));
  }
  if (is_outside_ && result) result = std::unexpected("not inside");
  kill();
  return result;
}

void Keeper::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  reports_ = sys::Fd();
}

std::string print(const Kept& kept) {
  const std::string path = escape_for_terminal(kept.path);
  switch (kept.kind) {
    case Kept::Kind::hidden_again:
      return format("{} was replaced on the host; it is hidden again", path);
    case Kept::Kind::read_only_again:
      return format("{} was replaced on the host; it is read-only again", path);
    case Kept::Kind::hidden: return format("{} appeared; it is hidden from the server", path);
    case Kept::Kind::set_aside: {
      const std::string now = format("{}/{}", parent_of(kept.path), kept.name);
      const std::string what = kept.why.empty() ? "" : format(" with {}", kept.why);
      return format(
          "{} appeared{} while the server ran, and programs of yours may run what it says: it is "
          "now {}\nhelp: look at it; to have it back: mv -n -- {} {}",
          path, escape_for_terminal(what), escape_for_terminal(now), shell_word(now),
          shell_word(kept.path));
    }
    case Kept::Kind::unwatched:
      return format(
          "{}, and what is made after it, is not looked at: there are too many directories", path);
    case Kept::Kind::not_inside:
    case Kept::Kind::failed: break;
  }
  return kept.why;
}

}  // namespace capgate::sandbox
