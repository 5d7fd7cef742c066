#include "sandbox/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "sandbox/memory_use.h"
#include "sandbox/prelude.h"
#include "sandbox/stderr_copy.h"

namespace capgate::sandbox {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds watch_interval{250};

// Unread bytes of a pipe, socket or terminal; 0 where there is no such thing.
int unread(int fd) {
  int count = 0;
  return ::ioctl(fd, FIONREAD, &count) == 0 ? count : 0;
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

class Supervisor {
 public:
  Supervisor(Sandbox& sandbox, const sys::Fd& signals, const Watch& watch, const Limits& limits,
             Tracer* tracer)
      : sandbox_(sandbox),
        signals_(signals),
        watch_(watch),
        limits_(limits),
        tracer_(tracer),
        copy_(sandbox.errors.get()) {
    if (limits.seconds()) deadline_ = Clock::now() + seconds(*limits.seconds());
  }

  Outcome run() {
    while (!ended_) wait_once();
    reap();
    copy_.drain();
    drain_output();
    finish();
    return std::move(outcome_);
  }

 private:
  void wait_once() {
    enum : std::size_t {
      control,
      init,
      errors,
      signals,
      input,
      output,
      keeper,
      trace,
      broker,
      count
    };
    pollfd polls[count] = {};
    for (auto& poll : polls) poll.fd = -1;
    polls[control] = {sandbox_.control.get(), POLLIN, 0};
    polls[init] = {sandbox_.init.get(), POLLIN, 0};
    polls[errors] = copy_.wanted();
    polls[signals] = {signals_.get(), POLLIN, 0};
    if (watch_.stdio.input.is_used()) {
      polls[input] = watch_.stdio.input.wanted();
    } else if (watch_.grace && !end_of_input_) {
      polls[input] = {STDIN_FILENO, POLLRDHUP, 0};
    }
    polls[output] = watch_.stdio.output.wanted();
    polls[keeper] = {watch_.keeper.fd(), POLLIN, 0};
    if (tracer_ != nullptr) polls[trace] = {tracer_->fd(), POLLIN, 0};
    if (watch_.broker != nullptr) polls[broker] = {watch_.broker->fd(), POLLIN, 0};
    if (::poll(polls, count, timeout()) < 0 && errno != EINTR) {
      return kill_all(format("poll: {}", std::strerror(errno)));
    }
    if (polls[errors].revents != 0) copy_.step();
    if (polls[trace].revents != 0) tracer_->step();
    if (polls[signals].revents != 0) pass_signals();
    if (polls[input].revents != 0) step_input(polls[input].revents);
    if (polls[output].revents != 0) watch_.stdio.output.step();
    if (polls[keeper].revents != 0) step_keeper();
    if (polls[control].revents != 0) (void)read_report();
    if (polls[init].revents != 0) ended_ = true;
    const bool is_told = polls[broker].revents != 0 || polls[control].revents != 0;
    if (watch_.broker != nullptr && !ended_ && (is_told || watch_.broker->deadline())) {
      step_broker();
    }
    watch_limits();
    end_after_input();
  }

  [[nodiscard]] int timeout() const {
    std::optional<Clock::time_point> next = deadline_;
    const auto earlier = [&](Clock::time_point time) {
      next = next ? std::min(*next, time) : time;
    };
    if (limits_.watched_memory()) earlier(next_look_);
    if (end_of_input_ && watch_.grace) earlier(std::min(Clock::now() + watch_interval, next_step_));
    if (watch_.broker != nullptr && watch_.broker->deadline()) {
      earlier(*watch_.broker->deadline());
    }
    if (const auto wakes = copy_.wakes()) earlier(*wakes);
    if (!next) return -1;
    const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
  }

  void pass_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGCHLD) continue;
      const bool is_word = info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2;
      if (!is_word) outcome_.was_told_to_end = true;
      send(static_cast<int>(info.ssi_signo));
    }
  }

  void send(int signal) { send({.signal = static_cast<std::uint32_t>(signal)}); }
  void send(const orders::Command& command) {
    (void)::send(sandbox_.control.get(), &command, sizeof(command), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // The whole pid namespace dies with its pid 1.
  void kill_all(std::string why) {
    if (!outcome_.explanation.empty()) return;
    outcome_.explanation = std::move(why);
    ::syscall(SYS_pidfd_send_signal, sandbox_.init.get(), SIGKILL, nullptr, 0);
  }

  // False if there was none.
  bool read_report() {
    orders::Report report;
    const auto fd = receive(report);
    if (!fd) return false;
    switch (report.kind) {
      case orders::Report::Kind::failed:
        if (!outcome_.failure) outcome_.failure = report;
        break;
      case orders::Report::Kind::exited: status_ = report.value; break;
      case orders::Report::Kind::listener:
        if (tracer_ != nullptr) tracer_->listen(sys::Fd(*fd));
        break;
      case orders::Report::Kind::socket: take_socket(report.index, sys::Fd(*fd)); break;
      case orders::Report::Kind::network_ready:
        if (watch_.broker != nullptr) watch_.broker->complete(report.value != 0);
        break;
      case orders::Report::Kind::cover:
        watch_.keeper.take_cover(report.index, sys::Fd(*fd));
        if (watch_.keeper.is_due()) step_keeper();
        break;
      case orders::Report::Kind::buffers: outcome_.tcp_is_bounded = report.value == 0; break;
    }
    return true;
  }

  // ---- the network ------------------------------------------------------------------------------

  void take_socket(std::uint32_t index, sys::Fd fd) {
    if (watch_.broker == nullptr || index >= watch_.capture->sockets.size() || fd.get() < 0) {
      return refuse({.message = "a socket of the sandbox did not arrive",
                     .help = "raise the limit of open files (ulimit -n)"});
    }
    const CaptureSocket& made = watch_.capture->sockets[index];
    watch_.broker->add({.fd = std::move(fd), .kind = made.kind, .port = made.port});
  }

  // The server runs once the broker has its sockets. Without a broker there is no sandbox.
  void step_broker() {
    const auto progress = watch_.broker->step();
    if (!progress) return refuse(progress.error());
    if (*progress != Broker::Progress::server_may_start) return;
    server_runs_ = true;
    send({.kind = orders::Command::Kind::go});
  }

  void refuse(const Refusal& refusal) {
    if (!server_runs_ && !outcome_.refusal) outcome_.refusal = refusal;
    kill_all(refusal.message);
  }

  // The descriptor that came along, -1 for none; nothing at the end of the stream.
  std::optional<int> receive(orders::Report& report) {
    iovec part{&report, sizeof(report)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t size =
        ::recvmsg(sandbox_.control.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (size == 0) sandbox_.control = sys::Fd();
    if (size != sizeof(report)) return std::nullopt;
    const cmsghdr* rights = CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
    }
    return fd;
  }

  // ---- what ends a sandbox ----------------------------------------------------------------------

  void watch_limits() {
    const auto now = Clock::now();
    if (deadline_ && now >= *deadline_) {
      deadline_.reset();
      kill_all(format("time limit {} reached; raise it with limit:time:{}",
                      limit_text("time", *limits_.seconds()),
                      limit_text("time", *limits_.seconds() * 2)));
    }
    if (!limits_.watched_memory() || now < next_look_) return;
    next_look_ = now + watch_interval;
    const std::uint64_t most = *limits_.watched_memory();
    if (memory_of_descendants(sandbox_.pid) > most) {
      kill_all(format("memory limit {} reached; raise it with limit:memory:{}",
                      limit_text("memory", most), limit_text("memory", most * 2)));
    }
  }

  // The client is gone: first the server may end by itself, then it is asked to, then made to.
  void end_after_input() {
    if (!watch_.grace || !end_of_input_) return;
    const auto now = Clock::now();
    if (stage_ == 0) {
      // Somebody who reads no more must not keep a server alive.
      if (next_step_ == Clock::time_point::max()) next_step_ = now + seconds(*watch_.grace);
      if (has_unread_words() && now < next_step_) return;
      stage_ = 1;
      next_step_ = now + seconds(*watch_.grace);
    } else if (now >= next_step_) {
      next_step_ = now + seconds(*watch_.grace);
      if (stage_++ == 1) {
        outcome_.was_told_to_end = true;
        send(SIGTERM);
      } else {
        kill_all("the server did not end after its input did");
      }
    }
  }

  void step_input(short events) {
    if (watch_.stdio.input.is_used()) {
      watch_.stdio.input.step();
      end_of_input_ = watch_.stdio.input.is_done();
    } else if ((events & (POLLHUP | POLLRDHUP | POLLERR)) != 0) {
      end_of_input_ = true;
    }
  }

  // A relayed input that has ended is no longer ours to look at: what the server has not read of it
  // by then it can still read.
  [[nodiscard]] bool has_unread_words() const {
    if (!watch_.stdio.input.is_used() && unread(STDIN_FILENO) > 0) return true;
    return watch_.stdio.output.is_used() ? watch_.stdio.output.has_unread()
                                         : unread(STDOUT_FILENO) > 0;
  }

  // The server's last words, unless nobody takes them.
  void drain_output() {
    constexpr int patience = 5000;
    Relay& output = watch_.stdio.output;
    while (output.is_used() && !output.is_done()) {
      pollfd poll = output.wanted();
      const int ready = ::poll(&poll, 1, patience);
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return;
      output.step();
    }
  }

  // A keeper that cannot do its work is no keeper: without it there is no sandbox.
  void step_keeper() {
    auto done = watch_.keeper.step(sandbox_.init.get());
    if (!done) {
      // A sandbox that is ending cannot be entered, and need not be.
      constexpr int patience = 500;
      pollfd end{sandbox_.init.get(), POLLIN, 0};
      if (::poll(&end, 1, patience) > 0) return;
      return kill_all(escape_for_terminal(done.error()));
    }
    for (Kept& kept : *done) tell_kept(std::move(kept));
  }

  // At once, unless a server makes a habit of it.
  void tell_kept(Kept kept) {
    constexpr std::size_t most = 20;
    if (++told_ <= most) say(format("capgate: {}\n", print(kept)));
    if (kept.kind == Kept::Kind::set_aside) outcome_.set_aside.push_back(std::move(kept));
  }

  void reap() {
    siginfo_t info{};
    while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(sandbox_.init.get()), &info,
                    WEXITED) != 0 &&
           errno == EINTR) {
    }
    // What init said last may still be unread, behind all of its sockets.
    while (sandbox_.control.get() >= 0 && read_report()) {
    }
  }

  void finish() {
    if (outcome_.failure || outcome_.refusal) return;
    if (status_) {
      outcome_.exit_code = exit_code_of(*status_);
      if (WIFSIGNALED(*status_)) outcome_.explanation = limits_.explain_end();
      return;
    }
    if (outcome_.explanation.empty()) outcome_.explanation = limits_.explain_end();
    if (outcome_.explanation.empty()) outcome_.explanation = "the sandbox was killed";
    outcome_.exit_code = 128 + SIGKILL;
  }

  Sandbox& sandbox_;
  const sys::Fd& signals_;
  const Watch& watch_;
  const Limits& limits_;
  Tracer* tracer_;
  std::size_t told_ = 0;  // of what the keeper did
  StderrCopy copy_;
  Outcome outcome_;
  std::optional<int> status_;
  bool ended_ = false;
  bool server_runs_ = false;  // told only with a broker
  bool end_of_input_ = false;
  int stage_ = 0;
  std::optional<Clock::time_point> deadline_;
  // Nothing can grow past a limit before it runs.
  Clock::time_point next_look_ = Clock::now() + watch_interval;
  Clock::time_point next_step_ = Clock::time_point::max();
};

}  // namespace

sys::Fd take_signals() {
  sigset_t passed;
  ::sigemptyset(&passed);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    ::sigaddset(&passed, signal);
  }
  ::sigprocmask(SIG_BLOCK, &passed, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return sys::Fd(::signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK));
}

Outcome supervise(Sandbox& sandbox, const sys::Fd& signals, const Watch& watch,
                  const Limits& limits, Tracer* tracer) {
  return Supervisor(sandbox, signals, watch, limits, tracer).run();
}

}  // namespace capgate::sandbox
