#include "sandbox/broker.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "sandbox/beside.h"
#include "sandbox/stderr_copy.h"
#include "sys/child.h"

namespace capgate::sandbox {
namespace {

namespace wire = egress::wire;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds longest_start{10};
constexpr seconds restart_window{10};
constexpr std::size_t most_restarts = 5;
constexpr milliseconds longest_end{2000};

Refusal refusal(std::string message, std::string help) {
  return {.message = std::move(message), .help = std::move(help)};
}

// ---- in the child: only async-signal-safe calls -------------------------------------------------

struct Child {
  const BrokerParts& parts;
  int control;
  int secrets;  // the pipe, or -1
  pid_t supervisor;
};

[[noreturn]] void give_up(int control, const char* what) {
  wire::Answer answer{.kind = wire::Answer::Kind::failed};
  const char* reason = strerrordesc_np(errno);
  ::strncat(answer.text, what, 100);
  ::strncat(answer.text, ": ", 3);
  ::strncat(answer.text, reason == nullptr ? "unknown" : reason, 100);
  (void)::send(control, &answer, sizeof(answer), MSG_NOSIGNAL);
  ::_exit(125);
}

// Away from the numbers that they get, first. Returns the program's new number.
int place_descriptors(const Child& child) {
  constexpr int above = 16;
  const sys::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const int control = ::fcntl(child.control, F_DUPFD_CLOEXEC, above);
  const int audit = ::fcntl(child.parts.audit.get(), F_DUPFD_CLOEXEC, above);
  const int policy = ::fcntl(child.parts.policy.get(), F_DUPFD_CLOEXEC, above);
  const int program = ::fcntl(child.parts.program.get(), F_DUPFD_CLOEXEC, above);
  const int secrets = ::fcntl(child.secrets, F_DUPFD_CLOEXEC, above);  // -1 where there are none
  const int renewal = ::fcntl(child.parts.renewal.get(), F_DUPFD_CLOEXEC, above);
  if (null.get() < 0 || control < 0 || audit < 0 || policy < 0 || program < 0 ||
      ::dup2(null.get(), STDIN_FILENO) < 0 || ::dup2(null.get(), STDOUT_FILENO) < 0 ||
      ::dup2(control, wire::control_fd) < 0 || ::dup2(audit, wire::audit_fd) < 0 ||
      ::dup2(policy, wire::policy_fd) < 0 ||
      ::syscall(SYS_close_range, wire::policy_fd + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    give_up(child.control, "its descriptors");
  }
  if ((secrets >= 0 && ::dup2(secrets, wire::secrets_fd) < 0) ||
      (renewal >= 0 && ::dup2(renewal, wire::renewal_fd) < 0)) {
    give_up(child.control, "its secrets");
  }
  return program;
}

bool reset_signals() {
  sys::default_signals();
  return sys::unblock_signals();
}

[[noreturn]] void run_child(const Child& child) {
  if (!reset_signals()) give_up(child.control, "its signals");
  // A signal from the terminal is the server's to answer, and needs the network meanwhile.
  if (::setsid() < 0) give_up(child.control, "its session");
  ::umask(077);
  if (::chdir("/") != 0) give_up(child.control, "its directory");
  if (child.parts.user.leaves_root && !leave_root_for_good(child.parts.user)) {
    give_up(child.control, "leaving root");
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up(child.control, "no_new_privs");
  // A change of ids clears it, so it comes after them. The supervisor may be gone already.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) give_up(child.control, "its end");
  if (::getppid() != child.supervisor) ::_exit(125);
  const int program = place_descriptors(child);
  const char* const arguments[] = {"capgate-broker", nullptr};
  const char* const environment[] = {nullptr};
  ::syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
  give_up(wire::control_fd, "running it");
}

// Container engines hide clone3, whose flags a filter cannot see; clone does as much here. The
// memory is not shared, so that the child may return from this function as well.
long fork_with_pidfd(int& pidfd) {
  clone_args args{};
  args.flags = CLONE_PIDFD | CLONE_VFORK;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &args, sizeof(args));
  if (pid >= 0 || errno != ENOSYS) return pid;
  return ::syscall(SYS_clone, args.flags | args.exit_signal, nullptr, &pidfd, nullptr, nullptr);
}

std::string words_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return format("exit status {}", info.si_status);
  return format("signal {}", info.si_status);
}

}  // namespace

std::expected<sys::Fd, Refusal> find_broker(std::string_view name) {
  return find_beside(
      {.name = name, .needed_by = "net capabilities need", .otherwise = "; or declare no net"});
}

std::expected<void, Refusal> Broker::start() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
      ::lseek(parts_.policy.get(), 0, SEEK_SET) != 0) {
    return std::unexpected(refusal(format("cannot start capgate-broker: {}", std::strerror(errno)),
                                   "see capgate doctor"));
  }
  control_ = sys::Fd(pair[0]);
  const sys::Fd inner(pair[1]);
  sys::Fd secrets;
  if (!parts_.secrets.empty()) {
    auto pipe = secrets::write_handover(parts_.secrets);
    if (!pipe) {
      return std::unexpected(refusal(format("the secrets cannot be handed over: {}", pipe.error()),
                                     "seal fewer or shorter ones"));
    }
    secrets = *std::move(pipe);
  }
  int pidfd = -1;
  const pid_t self = ::getpid();
  const long pid = fork_with_pidfd(pidfd);
  if (pid == 0) run_child({parts_, inner.get(), secrets.get(), self});
  if (pid < 0) {
    return std::unexpected(refusal(format("cannot start capgate-broker: {}", std::strerror(errno)),
                                   "raise the limit of processes of this user"));
  }
  process_ = sys::Fd(pidfd);
  is_ready_ = has_sockets_ = false;
  deadline_ = Clock::now() + longest_start;
  return {};
}

void Broker::complete(bool has_ipv6) {
  is_complete_ = true;
  has_ipv6_ = has_ipv6;
}

std::expected<Broker::Progress, Refusal> Broker::step() {
  if (auto read = read_answer(); !read) return std::unexpected(std::move(read).error());
  if (deadline_ && Clock::now() >= *deadline_) {
    if (auto failed = fail(format("no answer for {} s", longest_start.count())); !failed) {
      return std::unexpected(std::move(failed).error());
    }
  }
  if (!is_ready_ || !is_complete_ || has_sockets_) return Progress::none;
  if (!hand_over()) {
    auto failed = fail("it did not take its sockets");
    if (!failed) return std::unexpected(std::move(failed).error());
    return Progress::none;
  }
  has_sockets_ = true;
  return std::exchange(was_used_, true) ? Progress::none : Progress::server_may_start;
}

std::expected<void, Refusal> Broker::read_answer() {
  wire::Answer answer;
  const ssize_t size = ::recv(control_.get(), &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (size != sizeof(answer) || is_ready_) return fail("");
  answer.text[sizeof(answer.text) - 1] = '\0';
  if (answer.kind != wire::Answer::Kind::ready) return fail(escape_for_terminal(answer.text));
  is_ready_ = true;
  deadline_.reset();
  return {};
}

// Before the server ran nothing is lost by a refusal; afterwards another broker takes over.
std::expected<void, Refusal> Broker::fail(const std::string& why) {
  const std::string status = kill_and_reap();
  const std::string reason = why.empty() ? status : why;
  if (was_used_) return start_again(reason);
  return std::unexpected(refusal(format("capgate-broker does not start: {}", reason),
                                 "nothing can be reached without it; see capgate doctor"));
}

std::expected<void, Refusal> Broker::start_again(const std::string& why) {
  const auto now = Clock::now();
  while (!restarts_.empty() && now - restarts_.front() >= restart_window) restarts_.pop_front();
  if (restarts_.size() >= most_restarts) {
    return std::unexpected(
        refusal(format("capgate-broker ended {} times within {} s ({}), so the sandbox was ended",
                       most_restarts + 1, restart_window.count(), why),
                "look at the audit log, and report it"));
  }
  restarts_.push_back(now);
  (void)write_if_read(STDERR_FILENO,
                      format("capgate: capgate-broker ended ({}); its connections are closed, and "
                             "another one takes over\n",
                             why));
  return start();
}

// The descriptors are copies: ours stay for the next broker.
bool Broker::hand_over() {
  for (std::size_t first = 0; first < sockets_.size(); first += wire::most_sockets) {
    const std::size_t count = std::min(sockets_.size() - first, wire::most_sockets);
    wire::Handover handover{.count = static_cast<std::uint32_t>(count),
                            .ipv6 = has_ipv6_ ? 1U : 0U};
    std::array<int, wire::most_sockets> fds{};
    for (std::size_t i = 0; i < count; ++i) {
      handover.kinds[i] = sockets_[first + i].kind;
      handover.ports[i] = sockets_[first + i].port;
      fds[i] = sockets_[first + i].fd.get();
    }
    iovec part{&handover, sizeof(handover)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(fds))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.data(), count * sizeof(int));
    const ssize_t sent = ::sendmsg(control_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != sizeof(handover)) return false;
  }
  return true;
}

bool Broker::finish() {
  if (!has_sockets_) return false;
  sockets_.clear();
  const wire::Handover none;
  return ::send(control_.get(), &none, sizeof(none), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(none);
}

// It may still live: whoever says something unexpected is not trusted with the next word.
std::string Broker::kill_and_reap() {
  deadline_.reset();
  control_ = sys::Fd();
  if (process_.get() < 0) return "it is gone";
  // One that is ending by itself shows its own status.
  pollfd ended{process_.get(), POLLIN, 0};
  (void)::poll(&ended, 1, 100);
  ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  siginfo_t info{};
  while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process_.get()), &info,
                  WEXITED) != 0 &&
         errno == EINTR) {
  }
  process_ = sys::Fd();
  return words_of(info);
}

void Broker::end() {
  if (process_.get() < 0) return;
  control_ = sys::Fd();
  pollfd ended{process_.get(), POLLIN, 0};
  const auto last = Clock::now() + longest_end;
  for (auto left = longest_end; left.count() > 0;
       left = std::chrono::ceil<milliseconds>(last - Clock::now())) {
    const int count = ::poll(&ended, 1, static_cast<int>(left.count()));
    if (count > 0 || (count < 0 && errno != EINTR)) break;
  }
  (void)kill_and_reap();
}

}  // namespace capgate::sandbox
