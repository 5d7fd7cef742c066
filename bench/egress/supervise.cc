// Plays the supervisor for one relay that is measured or soaked: keeps the listening socket, starts
// the relay, and starts it again when asked.
//
//   supervise PORT broker PROGRAM AUDIT POLICY [NAME=FILE]...
//       capgate-broker, which gets the socket as its proxy; with names, capgate-broker-tls, which
//       gets what the files hold as its secrets, none of which expires
//   supervise PORT floor PROGRAM
//       the floor relay
//
// Prints the process id of the relay once it is ready. "kill" on stdin kills it and starts it
// again, and the new process id is printed. At the end of stdin the relay is told to end, and its
// exit status is ours.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "egress/wire.h"
#include "net.h"
#include "secrets/handover.h"
#include "sys/fd.h"

namespace {

using namespace capgate::bench;
using capgate::sys::Fd;
namespace secrets = capgate::secrets;
namespace wire = capgate::egress::wire;

constexpr int above_all_targets = 10;  // so that no dup2 below overwrites the source of another

Fd own(int fd, std::string_view what) {
  const Fd low(need(fd, what));
  return Fd(need(fcntl(low.get(), F_DUPFD_CLOEXEC, above_all_targets), "fcntl"));
}

Fd file_in_memory(const char* path) {
  const Fd source = own(open(path, O_RDONLY | O_CLOEXEC), path);
  Fd copy = own(memfd_create("policy", MFD_CLOEXEC), "memfd_create");
  char bytes[4096];
  ssize_t got = 0;
  while ((got = read(source.get(), bytes, sizeof(bytes))) > 0) {
    if (write(copy.get(), bytes, static_cast<std::size_t>(got)) != got) stop("write to a memfd");
  }
  lseek(copy.get(), 0, SEEK_SET);
  return copy;
}

secrets::Handed read_secret(std::string_view word) {
  const auto equals = word.find('=');
  if (equals == word.npos) stop("not NAME=FILE: {}", word);
  const std::string path(word.substr(equals + 1));
  const Fd file = own(open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  auto value = secrets::Secret::room(secrets::most_handed_bytes);
  if (!value) stop("memory that is locked: {}", strerror(errno));
  const auto room = value->bytes();
  value->shrink(static_cast<std::size_t>(
      need(static_cast<int>(read(file.get(), room.data(), room.size())), path)));
  return {.name = std::string(word.substr(0, equals)), .value = *std::move(value)};
}

// Anew for each broker, because reading empties the pipe. None without words.
Fd hand_secrets(std::span<char*> words) {
  if (words.empty()) return {};
  std::vector<secrets::Handed> handed;
  for (const char* word : words) handed.push_back(read_secret(word));
  auto reader = secrets::write_handover(handed);
  if (!reader) stop("{}", reader.error());
  return Fd(need(fcntl(reader->get(), F_DUPFD_CLOEXEC, above_all_targets), "fcntl"));
}

struct Inherited {
  const Fd& from;
  int to;
};

pid_t spawn(const char* program, const char* argument, std::span<const Inherited> inherited) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int last = STDERR_FILENO;
  for (const auto& [from, to] : inherited) {
    posix_spawn_file_actions_adddup2(&actions, from.get(), to);
    last = std::max(last, to);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, last + 1);
  char* const words[] = {const_cast<char*>(program), const_cast<char*>(argument), nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program, &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) stop("{}: {}", program, strerror(error));
  return pid;
}

void hand_over(const Fd& control, const Fd& listener, std::uint16_t port) {
  wire::Handover handover{.count = 1};
  handover.kinds[0] = wire::SocketKind::proxy;
  handover.ports[0] = port;
  iovec part{.iov_base = &handover, .iov_len = sizeof(handover)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = listener.get();
  std::memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
  if (sendmsg(control.get(), &message, MSG_NOSIGNAL) < 0) stop("sendmsg: {}", strerror(errno));
}

class Relay {
 public:
  Relay(std::uint16_t port, std::span<char*> words)
      : port_(port), listener_(own(listen_on(port), "listen")), words_(words) {
    is_broker_ = words[0] == std::string_view("broker") && words.size() >= 4;
    const bool is_floor = words[0] == std::string_view("floor") && words.size() == 2;
    if (!is_broker_ && !is_floor) stop("neither a broker nor a floor, or words are missing");
    if (!is_broker_) return;
    audit_ = own(open(words[2], O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600), words[2]);
  }

  void start() {
    if (is_broker_) {
      start_broker();
    } else {
      pid_ = spawn(words_[1], "-", std::array{Inherited{listener_, STDIN_FILENO}});
    }
    fmt::print("{}\n", pid_);
    std::fflush(stdout);
  }

  void kill_it() {
    kill(pid_, SIGKILL);
    std::ignore = wait_for_end();
    control_ = {};
  }

  int end() {
    control_ = {};
    if (!is_broker_) kill(pid_, SIGKILL);
    const int status = wait_for_end();
    if (!is_broker_) return 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  void start_broker() {
    int ends[2];
    need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "socketpair");
    control_ = own(ends[0], "control");
    const Fd theirs = own(ends[1], "control");
    const Fd policy = file_in_memory(words_[3]);
    const Fd nothing = own(open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");
    const Fd handed = hand_secrets(words_.subspan(4));
    std::vector<Inherited> inherited{{nothing, STDIN_FILENO},
                                     {nothing, STDOUT_FILENO},
                                     {theirs, wire::control_fd},
                                     {audit_, wire::audit_fd},
                                     {policy, wire::policy_fd}};
    if (handed.get() >= 0) inherited.push_back({handed, wire::secrets_fd});
    pid_ = spawn(words_[1], nullptr, inherited);
    read_answer();
    hand_over(control_, listener_, port_);
  }

  void read_answer() const {
    wire::Answer answer;
    const ssize_t got = recv(control_.get(), &answer, sizeof(answer), 0);
    if (got != static_cast<ssize_t>(sizeof(answer))) stop("the broker ended before it was ready");
    answer.text[sizeof(answer.text) - 1] = 0;
    if (answer.kind != wire::Answer::Kind::ready) stop("the broker: {}", answer.text);
  }

  [[nodiscard]] int wait_for_end() const {
    int status = 0;
    need(waitpid(pid_, &status, 0), "waitpid");
    return status;
  }

  std::uint16_t port_;
  Fd listener_;
  std::span<char*> words_;
  bool is_broker_ = false;
  Fd audit_;
  Fd control_;
  pid_t pid_ = -1;
};

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  if (words.size() < 4) {
    stop("usage: supervise PORT broker PROGRAM AUDIT POLICY [NAME=FILE]... | floor PROGRAM");
  }
  raise_descriptor_limit();
  Relay relay(parse_port(words[1]), words.subspan(2));
  relay.start();
  char line[16];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    if (std::string_view(line) != "kill\n") stop("not an order: {}", line);
    relay.kill_it();
    relay.start();
  }
  return relay.end();
}
