#include "secrets/renewal.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/format.h"
#include "secrets/sealable.h"
#include "sys/child.h"
#include "sys/file.h"

namespace capgate::secrets {
namespace {

std::unexpected<Problem> refuse(std::string_view what, int error) {
  return std::unexpected(
      Problem{.message = format("secrets cannot be renewed: {}: {}", what, std::strerror(error)),
              .help = "see capgate doctor"});
}

// ---- in the renewer's process -------------------------------------------------------------------

// Nothing of the supervisor's is left but its memory, where values are wiped by the fork, and
// stderr.
bool leave_supervisor(int channel, pid_t supervisor) {
  constexpr int place = 3;
  sys::default_signals();
  const sys::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  return sys::unblock_signals() && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && ::getppid() == supervisor &&
         ::prctl(PR_SET_NAME, "capgate-renewer", 0, 0, 0) == 0 &&
         // A signal from the terminal is the server's to answer.
         ::setsid() >= 0 && null.get() >= 0 && ::dup2(null.get(), STDIN_FILENO) >= 0 &&
         ::dup2(null.get(), STDOUT_FILENO) >= 0 &&
         (channel == place || ::dup3(channel, place, O_CLOEXEC) >= 0) &&
         ::syscall(SYS_close_range, place + 1, ~0U, 0) == 0;
}

void say(const Problem& problem) {
  (void)!sys::write_all(STDERR_FILENO, format("capgate: {}\n", problem.message));
}

std::optional<Resolved> renew(const Binding& binding, const Context& context) {
  auto renewed = resolve(binding, context);
  if (!renewed) {
    say(renewed.error());
    return std::nullopt;
  }
  if (const auto problem = why_not_sealable(binding.name, renewed->value.view())) {
    say(*problem);
    return std::nullopt;
  }
  return *std::move(renewed);
}

// False when nobody is there any more.
bool answer(int channel, const Binding& binding, const Context& context) {
  const auto renewed = renew(binding, context);
  RenewalReply reply;
  binding.name.copy(reply.name, longest_name);
  const std::string_view value = renewed ? renewed->value.view() : std::string_view();
  if (renewed) {
    reply.is_renewed = 1;
    reply.size = static_cast<std::uint32_t>(value.size());
    reply.expires = renewed->expires;
  }
  iovec parts[] = {{&reply, sizeof(reply)}, {const_cast<char*>(value.data()), value.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  while (::sendmsg(channel, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

[[noreturn]] void serve(const std::vector<Binding>& bindings, const Context& context) {
  for (;;) {
    RenewalRequest request;
    const ssize_t size = ::recv(context.cancel, &request, sizeof(request), MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) ::_exit(0);
    if (size != sizeof(request) || request.name[longest_name] != '\0') continue;
    const auto binding =
        std::ranges::find(bindings, std::string_view(request.name), &Binding::name);
    if (binding == bindings.end()) continue;
    if (!answer(context.cancel, *binding, context)) ::_exit(0);
  }
}

}  // namespace

std::expected<Renewer, Problem> start_renewer(const std::vector<Binding>& bindings,
                                              const Context& context) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return refuse("socketpair", errno);
  }
  Renewer out{.channel = sys::Fd(pair[0]), .process = {}};
  const sys::Fd inner(pair[1]);
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  const pid_t self = ::getpid();
  const long pid = ::syscall(SYS_clone3, &args, sizeof(args));
  if (pid < 0) return refuse("clone3", errno);
  if (pid == 0) {
    if (!leave_supervisor(inner.get(), self)) ::_exit(125);
    constexpr int channel = 3;
    serve(bindings, {.environment = context.environment,
                     .server = context.server,
                     .store_program = context.store_program,
                     .command_limit = context.command_limit,
                     .cancel = channel});
  }
  out.process = sys::Fd(pidfd);
  return out;
}

void Renewer::end() {
  channel = sys::Fd();
  if (process.get() < 0) return;
  // It ends by itself, and ends a command that runs; unless another end is still open.
  constexpr int longest_end = 1000;
  pollfd poll{process.get(), POLLIN, 0};
  while (::poll(&poll, 1, longest_end) < 0 && errno == EINTR) {
  }
  if (poll.revents == 0) (void)::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(process.get()), &info, WEXITED) < 0 &&
         errno == EINTR) {
  }
  process = sys::Fd();
}

}  // namespace capgate::secrets
