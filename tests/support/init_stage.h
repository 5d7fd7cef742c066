// Runs capgate-init with orders that a test makes by hand, and a shell script as its server.
//
//   InitStage stage("cat /data/file");
//   stage.bind("/data", directory);           // what the supervisor saw
//   stage.start();                            // what init does about it
//   stage.output()                            -> the server's stdout, to its end
//   stage.report()                            -> what init says: failed at a step, exited ...
//
// The supervisor is a child of the test: launch() changes the process that calls it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mount.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/landlock.h"
#include "sandbox/launch.h"
#include "sandbox/orders_write.h"
#include "support/temp_directory.h"
#include "sys/fd.h"

namespace capgate::test {

namespace orders = sandbox::orders;

inline constexpr int stage_milliseconds = 10'000;  // far more than anything here takes

// False at the end of time, which the test reports.
[[nodiscard]] inline bool is_readable(int fd, int milliseconds = stage_milliseconds) {
  pollfd poll{fd, POLLIN, 0};
  return ::poll(&poll, 1, milliseconds) > 0;
}

[[nodiscard]] inline std::pair<sys::Fd, sys::Fd> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  return {sys::Fd(ends[0]), sys::Fd(ends[1])};
}

// Everything up to the end of a stream.
[[nodiscard]] inline std::string read_to_end(int fd) {
  std::string out;
  for (char piece[4096];;) {
    if (!is_readable(fd)) {
      ADD_FAILURE() << "no end of the stream after: " << out;
      return out;
    }
    const ssize_t size = ::read(fd, piece, sizeof(piece));
    if (size <= 0) return out;
    out.append(piece, static_cast<std::size_t>(size));
  }
}

class InitStage {
 public:
  // Everything is set up so that the script runs: the host's /usr and a /proc of its own.
  explicit InitStage(const std::string& script) {
    const int abi = sandbox::probe_landlock_abi();
    bound.landlock_handled = sandbox::landlock_handled(abi);
    bound.landlock_scoped = sandbox::landlock_scoped(abi);
    bound.landlock_attribute_size = sandbox::landlock_attribute_size(abi);
    for (const char* link : {"bin", "lib", "lib64"}) {
      bound.mounts.push_back({.kind = orders::MountKind::symlink,
                              .target = std::string("/") + link,
                              .source = std::string("usr/") + link});
    }
    bind("/usr", "/usr");
    directory("/proc");
    bound.mounts.push_back({.kind = orders::MountKind::proc,
                            .target = "/proc",
                            .attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV});
    allow("/usr", {"read_file", "read_dir", "execute"});
    allow("/proc", {"read_file", "read_dir"});
    run("/usr/bin/dash", {"sh", "-c", script});
    bound.environment = {"PATH=/usr/bin"};
    bound.directory = "/";
    constexpr std::uint32_t allow_every_call = 0x7fff0000;
    launch.filter.code = {{.code = 6, .k = allow_every_call}};
    user.inside = bound.uid;
  }
  InitStage(const InitStage&) = delete;
  InitStage& operator=(const InitStage&) = delete;
  ~InitStage() {
    control_ = sys::Fd();
    link_ = sys::Fd();
    if (supervisor_ > 0) EXPECT_EQ(::waitpid(supervisor_, nullptr, 0), supervisor_);
  }

  // ---- before the start -------------------------------------------------------------------------

  void directory(const std::string& target) {
    bound.mounts.push_back({.kind = orders::MountKind::directory, .target = target, .mode = 0755});
  }
  // A directory of the host, which can be read inside; the identity is that of this moment.
  void bind(const std::string& target, const std::string& source) {
    directory(target);
    add(orders::MountKind::bind, target, source);
    bound.mounts.back().in_private = true;
    allow(target, {"read_file", "read_dir"});
  }
  void add(orders::MountKind kind, const std::string& target, const std::string& host) {
    const auto identity = sandbox::identify(host);
    if (!identity) std::abort();
    bound.mounts.push_back(
        {.kind = kind,
         .target = target,
         .source = kind == orders::MountKind::bind ? host : "",
         .identity = *identity,
         .attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV});
  }
  void allow(const std::string& path, const std::vector<std::string_view>& rights) {
    bound.landlock.push_back(
        {.path = path, .access = sandbox::landlock_access(rights, sandbox::probe_landlock_abi())});
  }
  void run(const std::string& program, std::vector<std::string> arguments) {
    bound.program = program;
    bound.program_identity = sandbox::identify(program).value_or(sandbox::Identity{});
    bound.arguments = std::move(arguments);
  }

  sandbox::Bound bound;
  sandbox::Launch launch;
  sandbox::LaunchDetails details;
  sandbox::HostUser user = sandbox::choose_host_user();
  std::function<void()> as_caller = [] {};  // in the supervisor, before the launch
  std::function<void(std::string& block)> edit_orders = [](std::string&) {};

  // ---- the start and after ----------------------------------------------------------------------

  void start() {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    link_ = sys::Fd(pair[0]);
    sys::Fd inner(pair[1]);
    auto [in, in_writer] = make_pipe();
    auto [out, out_writer] = make_pipe();
    supervisor_ = ::fork();
    if (supervisor_ == 0) {
      link_ = sys::Fd();
      ::dup2(in.get(), STDIN_FILENO);
      ::dup2(out_writer.get(), STDOUT_FILENO);
      in = sys::Fd();
      in_writer = sys::Fd();
      out_writer = sys::Fd();
      supervise(std::move(inner));
    }
    inner = sys::Fd();
    in = sys::Fd();
    out_writer = sys::Fd();
    input_ = std::move(in_writer);
    output_ = std::move(out);
    take_sandbox();
  }

  // The next word of init; none if it ended.
  [[nodiscard]] std::optional<orders::Report> report() const {
    orders::Report out;
    if (!is_readable(control_.get())) {
      ADD_FAILURE() << "init says nothing";
      return std::nullopt;
    }
    if (::recv(control_.get(), &out, sizeof(out), 0) != sizeof(out)) return std::nullopt;
    return out;
  }
  [[nodiscard]] std::string output() const { return read_to_end(output_.get()); }
  [[nodiscard]] std::string errors() const { return read_to_end(errors_.get()); }
  [[nodiscard]] int output_fd() const { return output_.get(); }
  [[nodiscard]] pid_t pid() const { return pid_; }  // of init, as the host sees it
  void send(const orders::Command& command) const {
    EXPECT_EQ(::send(control_.get(), &command, sizeof(command), MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof(command)));
  }
  void answer(const std::string& line) const {
    EXPECT_EQ(::write(input_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  [[nodiscard]] bool input_has_no_reader() const {
    pollfd poll{input_.get(), 0, 0};
    return ::poll(&poll, 1, stage_milliseconds) > 0 && (poll.revents & POLLERR) != 0;
  }
  void close_control() { control_ = sys::Fd(); }

 private:
  // Sends the test what launch() gives, and waits until the test is done with it.
  [[noreturn]] void supervise(sys::Fd link) {
    as_caller();
    std::string block = sandbox::write_orders(bound, launch);
    edit_orders(block);
    auto sandbox = sandbox::launch(block, user, {}, {}, details);
    if (!sandbox) {
      (void)!::write(STDERR_FILENO, sandbox.error().message.data(), sandbox.error().message.size());
      ::_exit(1);
    }
    const std::array<int, 2> fds = {sandbox->control.get(), sandbox->errors.get()};
    iovec part{&sandbox->pid, sizeof(sandbox->pid)};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(fds))> rights{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = rights.data();
    message.msg_controllen = rights.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(fds));
    std::memcpy(CMSG_DATA(head), fds.data(), sizeof(fds));
    (void)::sendmsg(link.get(), &message, MSG_NOSIGNAL);
    // From here on only the sandbox holds the server's streams.
    sandbox->control = sys::Fd();
    sandbox->errors = sys::Fd();
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    if (details.inner_sockets >= 0) ::close(details.inner_sockets);
    char byte = 0;
    (void)!::read(link.get(), &byte, 1);
    ::kill(sandbox->pid, SIGKILL);
    ::waitpid(sandbox->pid, nullptr, 0);
    ::_exit(0);
  }

  void take_sandbox() {
    std::array<int, 2> fds = {-1, -1};
    iovec part{&pid_, sizeof(pid_)};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(fds))> rights{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = rights.data();
    message.msg_controllen = rights.size();
    ASSERT_TRUE(is_readable(link_.get()));
    ASSERT_EQ(::recvmsg(link_.get(), &message, MSG_CMSG_CLOEXEC),
              static_cast<ssize_t>(sizeof(pid_)))
        << "the sandbox could not be made: see capgate doctor";
    std::memcpy(fds.data(), CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fds));
    control_ = sys::Fd(fds[0]);
    errors_ = sys::Fd(fds[1]);
  }

  pid_t supervisor_ = -1;
  pid_t pid_ = -1;
  sys::Fd link_;
  sys::Fd control_;
  sys::Fd errors_;
  sys::Fd input_;
  sys::Fd output_;
};

}  // namespace capgate::test
