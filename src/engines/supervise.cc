#include "engines/supervise.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "base/format.h"
#include "sandbox/memory_use.h"
#include "sandbox/stderr_copy.h"

namespace capgate::engines {
namespace {

using Clock = std::chrono::steady_clock;
using sandbox::limit_text;
using sandbox::Outcome;
using sandbox::Refusal;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds watch_interval{250};
// An engine that does not end although its server was killed.
constexpr seconds longest_end{10};

int unread(int fd) {
  int count = 0;
  return ::ioctl(fd, FIONREAD, &count) == 0 ? count : 0;
}

class Supervisor {
 public:
  using Starter = std::function<std::expected<std::unique_ptr<Server>, Refusal>()>;

  Supervisor(const Watch& watch, const Starter& start) : watch_(watch), start_(start) {}

  Outcome run() {
    if (watch_.broker == nullptr) start_server();
    while (!ended_) wait_once();
    if (server_) finish();
    server_.reset();  // what it leaves behind is removed before anything else is
    return std::move(outcome_);
  }

 private:
  void start_server() {
    auto started = start_();
    if (!started) return refuse(started.error());
    server_ = *std::move(started);
    copy_.emplace(server_->errors());
    if (watch_.limits.seconds()) deadline_ = Clock::now() + seconds(*watch_.limits.seconds());
    next_look_ = Clock::now() + watch_interval;
  }

  void wait_once() {
    enum : std::size_t { process, said, errors, signals, input, broker, count };
    pollfd polls[count] = {};
    for (auto& poll : polls) poll.fd = -1;
    if (server_) {
      polls[process] = {server_->process().pidfd.get(), POLLIN, 0};
      polls[said] = {server_->fd(), POLLIN, 0};
      polls[errors] = copy_->wanted();
    }
    polls[signals] = {watch_.signals.get(), POLLIN, 0};
    if (watch_.grace && !end_of_input_) polls[input] = {STDIN_FILENO, POLLRDHUP, 0};
    if (watch_.broker != nullptr) polls[broker] = {watch_.broker->fd(), POLLIN, 0};
    if (::poll(polls, count, timeout()) < 0 && errno != EINTR) {
      return refuse({.message = format("poll: {}", std::strerror(errno)), .help = {}});
    }
    if (polls[errors].revents != 0) copy_->step();
    if (polls[said].revents != 0) server_->step();
    if (polls[signals].revents != 0) pass_signals();
    if ((polls[input].revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) end_of_input_ = true;
    if (polls[process].revents != 0) ended_ = true;
    if (watch_.broker != nullptr && !ended_) step_broker();
    if (server_ && !ended_) watch_limits();
    if (server_ && !ended_) end_after_input();
  }

  [[nodiscard]] int timeout() const {
    std::optional<Clock::time_point> next = deadline_;
    const auto earlier = [&](std::optional<Clock::time_point> time) {
      if (time) next = next ? std::min(*next, *time) : time;
    };
    const auto soon = Clock::now() + watch_interval;
    if (server_ && watch_.limits.watched_memory()) earlier(next_look_);
    if (server_ && end_of_input_) earlier(std::min(soon, next_step_));
    if (watch_.broker != nullptr) earlier(watch_.broker->deadline());
    if (copy_) earlier(copy_->wakes());
    earlier(last_moment_);
    if (!next) return -1;
    const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
  }

  void pass_signals() {
    signalfd_siginfo info{};
    while (::read(watch_.signals.get(), &info, sizeof(info)) == sizeof(info)) {
      const auto signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      if (signal != SIGUSR1 && signal != SIGUSR2) outcome_.was_told_to_end = true;
      if (server_) {
        server_->pass(signal);
      } else {
        outcome_.exit_code = 128 + signal;
        ended_ = true;
      }
    }
  }

  // Without a broker there is no sandbox.
  void step_broker() {
    const auto progress = watch_.broker->step();
    if (!progress) return refuse(progress.error());
    if (*progress == sandbox::Broker::Progress::server_may_start) start_server();
  }

  void refuse(const Refusal& refusal) {
    if (server_) return kill_all(refusal.message);
    outcome_.refusal = refusal;
    ended_ = true;
  }

  void kill_all(std::string why) {
    if (!outcome_.explanation.empty()) return;
    outcome_.explanation = std::move(why);
    last_moment_ = Clock::now() + longest_end;
    server_->kill();
  }

  void watch_limits() {
    const auto now = Clock::now();
    const sandbox::Limits& limits = watch_.limits;
    if (deadline_ && now >= *deadline_) {
      deadline_.reset();
      kill_all(format("time limit {} reached; raise it with limit:time:{}",
                      limit_text("time", *limits.seconds()),
                      limit_text("time", *limits.seconds() * 2)));
    }
    if (last_moment_ && now >= *last_moment_) {
      last_moment_.reset();
      ::syscall(SYS_pidfd_send_signal, server_->process().pidfd.get(), SIGKILL, nullptr, 0);
    }
    if (!limits.watched_memory() || now < next_look_) return;
    next_look_ = now + watch_interval;
    const std::uint64_t most = *limits.watched_memory();
    if (sandbox::memory_of_descendants(server_->process().pid) <= most) return;
    kill_all(format("memory limit {} reached; raise it with limit:memory:{}",
                    limit_text("memory", most), limit_text("memory", most * 2)));
  }

  // The client is gone: first the server may end by itself, then it is asked to, then made to.
  void end_after_input() {
    if (!watch_.grace || !end_of_input_) return;
    const auto now = Clock::now();
    if (stage_ == 0) {
      // Somebody who reads no more must not keep a server alive.
      if (next_step_ == Clock::time_point::max()) next_step_ = now + seconds(*watch_.grace);
      const bool has_unread_words = unread(STDIN_FILENO) > 0 || unread(STDOUT_FILENO) > 0;
      if (has_unread_words && now < next_step_) return;
      stage_ = 1;
      next_step_ = now + seconds(*watch_.grace);
    } else if (now >= next_step_) {
      next_step_ = now + seconds(*watch_.grace);
      if (stage_++ == 1) {
        outcome_.was_told_to_end = true;
        server_->pass(SIGTERM);
      } else {
        kill_all("the server did not end after its input did");
      }
    }
  }

  void finish() {
    const int status = reap(server_->process());
    server_->step();
    copy_->drain();
    const auto code = server_->result(status);
    if (!code) {
      if (outcome_.explanation.empty()) outcome_.refusal = code.error();
      return;
    }
    outcome_.exit_code = outcome_.explanation.empty() ? *code : 128 + SIGKILL;
    if (outcome_.explanation.empty() && *code > 128) {
      outcome_.explanation = watch_.limits.explain_end();
    }
  }

  const Watch& watch_;
  const Starter& start_;
  std::unique_ptr<Server> server_;
  std::optional<sandbox::StderrCopy> copy_;
  Outcome outcome_;
  bool ended_ = false;
  bool end_of_input_ = false;
  int stage_ = 0;
  std::optional<Clock::time_point> deadline_;
  std::optional<Clock::time_point> last_moment_;
  Clock::time_point next_look_;
  Clock::time_point next_step_ = Clock::time_point::max();
};

}  // namespace

Outcome supervise(const Watch& watch,
                  const std::function<std::expected<std::unique_ptr<Server>, Refusal>()>& start) {
  return Supervisor(watch, start).run();
}

}  // namespace capgate::engines
