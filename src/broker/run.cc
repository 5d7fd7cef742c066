#include "broker/run.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "base/format.h"
#include "broker/confine.h"
#include "core/version.h"
#include "egress/broker.h"
#include "egress/policy.h"
#include "egress/wire.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::broker {
namespace {

namespace wire = egress::wire;

constexpr int refused = 125;

int fail(std::string_view why) {
  wire::Answer answer{.kind = wire::Answer::Kind::failed};
  why.copy(answer.text, sizeof(answer.text) - 1);
  (void)::send(wire::control_fd, &answer, sizeof(answer), MSG_NOSIGNAL);
  return refused;
}

// The terminal's signals are for the server and for capgate, which ends this process by closing the
// control socket; only then the last audit lines are written.
void ignore_signals() {
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    (void)std::signal(signal, SIG_IGN);
  }
}

void allow_many_descriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

std::string read_orders() {
  struct stat info{};
  if (::fstat(wire::policy_fd, &info) != 0) return {};
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t size = ::pread(wire::policy_fd, text.data(), text.size(), 0);
  ::close(wire::policy_fd);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return text;
}

// One message: the sockets of the sandbox. Nothing when there is none; false at the end.
class Handovers {
 public:
  explicit Handovers(egress::Broker& broker) : broker_(broker) {}

  bool receive(egress::Socket& control) {
    wire::Handover handover;
    iovec part{&handover, sizeof(handover)};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * wire::most_sockets)> rights;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = rights.data();
    message.msg_controllen = rights.size();
    const ssize_t size = ::recvmsg(control.fd(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (size < 0) {
      control.is_readable = false;
      return errno == EAGAIN || errno == EINTR;
    }
    if (size == 0) return false;
    const cmsghdr* head = CMSG_FIRSTHDR(&message);
    std::array<int, wire::most_sockets> fds{};
    std::size_t count = 0;
    if (head != nullptr && head->cmsg_type == SCM_RIGHTS) {
      count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      std::memcpy(fds.data(), CMSG_DATA(head), count * sizeof(int));
    }
    if (size != sizeof(handover) || count != handover.count) return false;
    if (count == 0) {
      broker_.finish();
      return true;
    }
    broker_.set_ipv6(handover.ipv6 != 0);
    for (std::size_t i = 0; i < count; ++i) {
      if (!broker_.take(handover.kinds[i], handover.ports[i], sys::Fd(fds[i]))) return false;
    }
    return true;
  }

 private:
  egress::Broker& broker_;
};

egress::Task obey(egress::Broker& broker, egress::SocketPtr control) {
  egress::Loop& loop = broker.loop();
  Handovers handovers(broker);
  while (co_await loop.readable(*control) == egress::Woken::ready) {
    if (!handovers.receive(*control)) break;
  }
  loop.stop();
}

int run(const Setup& setup) {
  ignore_signals();
  allow_many_descriptors();
  auto policy = egress::read_policy(read_orders());
  if (!policy) return fail(format("the orders cannot be read: {}", policy.error().message));
  egress::Broker broker(*std::move(policy), wire::audit_fd, STDERR_FILENO);
  Extras extras;
  if (setup) {
    auto made = setup(broker);
    if (!made) return fail(made.error());
    extras = *std::move(made);
  }
  if (const std::string why = confine(extras.needs); !why.empty()) {
    return fail(format("the broker cannot confine itself: {}", why));
  }
  if (!broker.begin()) return fail(format("the audit log: {}", std::strerror(errno)));
  (void)::fcntl(wire::control_fd, F_SETFL, O_NONBLOCK);
  egress::SocketPtr control = broker.loop().adopt(sys::Fd(wire::control_fd));
  if (!control) return fail("epoll");
  const wire::Answer ready;
  if (::send(wire::control_fd, &ready, sizeof(ready), MSG_NOSIGNAL) < 0) return refused;
  if (extras.begin) extras.begin();
  obey(broker, std::move(control));
  broker.loop().run();
  broker.end();
  return 0;
}

}  // namespace

int main_of_broker(int count, char** arguments, const Setup& setup) {
  if (count == 2 && std::string_view(arguments[1]) == "--version") {
    return sys::write_all(STDOUT_FILENO, format("{}\n", core::compiler_id)) ? 0 : 1;
  }
  if (count != 1 || ::fcntl(wire::control_fd, F_GETFD) < 0) {
    constexpr std::string_view words =
        "capgate-broker is started by `capgate run`; it takes no arguments.\n";
    return sys::write_all(STDERR_FILENO, words) ? 2 : 1;
  }
  return run(setup);
}

}  // namespace capgate::broker
