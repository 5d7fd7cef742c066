#include "sandbox/egress_service.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "egress/credential.h"
#include "sandbox/audit_file.h"
#include "sandbox/broker.h"
#include "sandbox/egress_token.h"
#include "sandbox/launch.h"
#include "sandbox/network.h"
#include "sandbox/stderr_copy.h"
#include "sandbox/supervise.h"
#include "sys/file.h"
#include "text/json_write.h"

namespace capgate::sandbox {
namespace {

using std::chrono::milliseconds;

std::unexpected<Refusal> refuse(std::string message, std::string help) {
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}

// What systemd's Type=notify waits for. Without NOTIFY_SOCKET nobody does.
void notify_service_manager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = path == nullptr ? 0 : std::strlen(path);
  if (size < 2 || size >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@')) return;
  std::copy_n(path, size, address.sun_path);
  if (path[0] == '@') address.sun_path[0] = '\0';  // a name without a file
  const sys::Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  if (::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), length) < 0) {
    (void)write_if_read(STDERR_FILENO,
                        format("capgate: NOTIFY_SOCKET was not told: {}\n", std::strerror(errno)));
  }
}

struct Announcement {
  const egress::Policy& policy;
  const EgressPlace& place;
  const std::string& audit;
  bool json;
};

bool announce(const Announcement& told) {
  if (!told.json) {
    return write_if_read(STDERR_FILENO, format("capgate: listening on {}, log in {}\n",
                                               escape_for_terminal(told.place.name),
                                               escape_for_terminal(told.audit)));
  }
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.begin_object().key("listening").string(told.place.name);
  if (!told.place.forwarder.empty()) json.key("forwarder").string(told.place.forwarder);
  json.key("server").string(told.policy.server).key("policyHash").string(told.policy.hash);
  json.key("audit").string(told.audit).end_object();
  return sys::write_all(STDOUT_FILENO, std::move(json).take() + "\n").has_value();
}

// True if it was told to end.
bool is_told_to_end(const sys::Fd& signals) {
  bool ends = false;
  signalfd_siginfo info{};
  while (::read(signals.get(), &info, sizeof(info)) == sizeof(info)) {
    const auto signal = static_cast<int>(info.ssi_signo);
    ends |= signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
  }
  return ends;
}

int wait_for(const Broker& broker, const sys::Fd& signals, short& signalled) {
  pollfd polls[] = {{broker.fd(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
  int timeout = -1;
  if (const auto deadline = broker.deadline()) {
    const auto left = std::chrono::ceil<milliseconds>(*deadline - Broker::Clock::now());
    timeout = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
  }
  const int count = ::poll(polls, 2, timeout);
  signalled = polls[1].revents;
  return count < 0 && errno == EINTR ? 0 : count;
}

// Until a signal, or until the broker cannot be kept alive.
std::expected<void, Refusal> watch(Broker& broker, const sys::Fd& signals,
                                   const Announcement& told) {
  for (;;) {
    short signalled = 0;
    if (wait_for(broker, signals, signalled) < 0) {
      return refuse(format("poll: {}", std::strerror(errno)), "see capgate doctor");
    }
    if (signalled != 0 && is_told_to_end(signals)) return {};
    const auto progress = broker.step();
    if (!progress) return std::unexpected(progress.error());
    if (*progress != Broker::Progress::server_may_start) continue;
    if (!announce(told)) return refuse("nobody reads what capgate egress listens at", "read it");
    notify_service_manager("READY=1");
  }
}

// What is under way may come to its end, unless that takes long or a second signal says otherwise.
void drain(Broker& broker, const sys::Fd& signals) {
  constexpr milliseconds longest{5000};
  if (!broker.finish()) return;
  const auto last = Broker::Clock::now() + longest;
  for (auto left = longest; left.count() > 0;
       left = std::chrono::ceil<milliseconds>(last - Broker::Clock::now())) {
    pollfd polls[] = {{broker.fd(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    const int count = ::poll(polls, 2, static_cast<int>(left.count()));
    if (count < 0 && errno != EINTR) return;
    if (polls[0].revents != 0 || (polls[1].revents != 0 && is_told_to_end(signals))) return;
  }
}

}  // namespace

std::expected<std::unique_ptr<EgressBroker>, Refusal> start_egress(EgressService& service,
                                                                   const Bound& reach) {
  sys::Fd program = TRY(find_broker(plain_broker));
  egress::Policy& policy = service.policy;
  policy.sandbox = TRY(random_run_name());
  if (service.where.kind == Where::Kind::tcp) {
    const std::string token = TRY(open_token(service.token_file));
    policy.proxy_credential = egress::proxy_credential(egress::proxy_user, token);
  }
  EgressPlace place = TRY(open_place(service.where));
  AuditFile audit = TRY(open_audit_file({.file = service.audit,
                                         .directory = service.audit_directory,
                                         .name = audit_name(policy.server, policy.sandbox)},
                                        reach));
  auto memory = sealed_file("capgate-policy", egress::print_policy(policy), false);
  if (!memory) return refuse("cannot make the broker's policy", std::strerror(memory.error()));
  sys::Fd listener = std::move(place.listener);
  auto made = std::make_unique<EgressBroker>(std::move(place), std::move(audit.path),
                                             BrokerParts{.program = std::move(program),
                                                         .policy = *std::move(memory),
                                                         .audit = std::move(audit.fd),
                                                         .user = choose_broker_user()});
  made->broker.add({.fd = std::move(listener), .kind = egress::wire::SocketKind::proxy});
  made->broker.complete(true);
  if (auto started = made->broker.start(); !started) {
    return std::unexpected(std::move(started).error());
  }
  return made;
}

std::expected<void, Refusal> serve_egress(EgressService service) {
  const sys::Fd signals = take_signals();
  if (signals.get() < 0) return refuse("no signals", std::strerror(errno));
  const std::unique_ptr<EgressBroker> served = TRY(start_egress(service, Bound{}));
  Broker& broker = served->broker;
  auto watched = watch(broker, signals,
                       {.policy = service.policy,
                        .place = served->place,
                        .audit = served->audit_path,
                        .json = service.json});
  if (watched) {
    notify_service_manager("STOPPING=1");
    drain(broker, signals);
  }
  broker.end();
  return watched;
}

}  // namespace capgate::sandbox
