// bwrap as an engine. The words of the artifact are its own; before them stand two of ours, by
// which bwrap says who the server is and waits until the limits are on it.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/base64.h"
#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "engines/server.h"
#include "secrets/secret.h"
#include "sys/file.h"
#include "text/json.h"

namespace capgate::engines {
namespace {

using sandbox::Refusal;

std::unexpected<Refusal> refuse(std::string message, std::string help) {
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}

// A bit of a line such as "SigCgt:\t0000000000004000".
bool has_signal(std::string_view status, std::string_view line, int signal) {
  const std::size_t at = status.find(line);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = status.substr(at + line.size(), 16);
  std::uint64_t bits = 0;
  for (const char c : digits) {
    bits = (bits << 4U) | static_cast<unsigned>(is_digit(c) ? c - '0' : c - 'a' + 10);
  }
  return ((bits >> static_cast<unsigned>(signal - 1)) & 1U) != 0;
}

void send_signal(const sys::Fd& process, int signal) {
  ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

class Bwrap : public Server {
 public:
  explicit Bwrap(std::vector<sandbox::BoundLimit> limits) : limits_(std::move(limits)) {}
  ~Bwrap() override = default;

  std::expected<void, Refusal> start(const Parts& parts) {
    Pipe errors = TRY(make_pipe());
    Pipe status = TRY(make_pipe());
    Pipe gate = TRY(make_pipe());
    std::vector<sys::Fd> files;
    Start start{.program = parts.run.setting.program,
                .arguments = {},
                .environment = {},  // what the server gets travels on a descriptor
                .descriptors = {{errors.write.get(), STDERR_FILENO}},
                .placement = parts.limits.placement()};
    int next = STDERR_FILENO + 1;
    for (const lower::Descriptor& entry : parts.run.artifact.fds) {
      files.push_back(TRY(open_entry(entry, parts)));
      const auto number = static_cast<int>(entry.fd);
      start.descriptors.push_back({files.back().get(), number});
      next = std::max(next, number + 1);
    }
    start.descriptors.push_back({status.write.get(), next});
    start.descriptors.push_back({gate.read.get(), next + 1});
    start.arguments = words(parts, next, next + 1);
    process_ = TRY(start_process(start));
    errors_ = std::move(errors.read);
    status_ = std::move(status.read);
    gate_ = std::move(gate.write);
    (void)::fcntl(status_.get(), F_SETFL, O_NONBLOCK);
    return {};
  }

  [[nodiscard]] int fd() const override { return status_.get(); }

  void step() override {
    std::array<char, 4096> buffer{};
    for (;;) {
      const ssize_t size = ::read(status_.get(), buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size == 0) status_ = sys::Fd();
      if (size <= 0) break;
      said_.append(buffer.data(), static_cast<std::size_t>(size));
    }
    for (std::size_t end = said_.find('\n'); end != std::string::npos; end = said_.find('\n')) {
      hear(said_.substr(0, end));
      said_.erase(0, end + 1);
    }
  }

  // The server is pid 1 of its namespace, and for that one the kernel leaves out what a signal does
  // by default. So that is done here.
  void pass(int signal) override {
    if (server_.get() < 0) {
      ended_by_ = signal;
      return kill();
    }
    const auto status = sys::read_file(format("/proc/{}/status", pid_), 65536);
    const bool arrives = status && (has_signal(*status, "SigCgt:\t", signal) ||
                                    has_signal(*status, "SigIgn:\t", signal) ||
                                    has_signal(*status, "SigBlk:\t", signal));
    if (arrives) return send_signal(server_, signal);
    ended_by_ = signal;
    kill();
  }

  // With its pid 1 the whole namespace dies. bwrap itself is killed only while there is none.
  void kill() override {
    is_killed_ = true;
    send_signal(server_.get() >= 0 ? server_ : process_.pidfd, SIGKILL);
  }

  [[nodiscard]] std::expected<int, Refusal> result(int status) override {
    if (refusal_) return std::unexpected(*refusal_);
    if (ended_by_ != 0) return 128 + ended_by_;
    if (exit_code_) return *exit_code_;
    if (is_killed_) return 128 + SIGKILL;
    return refuse(format("bwrap did not start the server, and ended with status {}", status),
                  "see what it wrote to stderr, and capgate doctor");
  }

 private:
  static std::expected<sys::Fd, Refusal> open_entry(const lower::Descriptor& entry,
                                                    const Parts& parts) {
    if (!entry.base64.empty() || entry.names.empty()) {
      const auto contents = decode_base64(entry.base64);
      if (!contents) return refuse("a descriptor of the artifact is not base64", "report this");
      return artifact_file(*contents);
    }
    std::string words;
    for (const std::string& name : entry.names) {
      std::string setting = TRY(declared_variable(name, parts.prepared));
      words += format("--setenv{0}{1}{0}", '\0', name);
      words.append(setting, name.size() + 1).push_back('\0');
      secrets::wipe(setting);
    }
    auto file = artifact_file(words);
    secrets::wipe(words);
    return file;
  }

  static std::vector<std::string> words(const Parts& parts, int status, int gate) {
    const Setting& setting = parts.run.setting;
    std::vector<std::string> out{"bwrap", "--json-status-fd", std::to_string(status), "--block-fd",
                                 std::to_string(gate)};
    const auto& argv = parts.run.artifact.argv;
    out.insert(out.end(), argv.begin(), argv.end());
    // The artifact starts in HOME. No path is called that, so the first such word is the option.
    const auto option = std::ranges::find(out, "--chdir");
    if (option != out.end()) *std::next(option) = setting.directory;
    out.insert(out.end(), setting.command.begin(), setting.command.end());
    return out;
  }

  void hear(const std::string& line) {
    const auto document = text::parse_json(line);
    if (!document) return;
    const text::Value root = document->root();
    if (const auto value = root.find("exit-code")) {
      if (const auto code = parse_decimal(value->text())) exit_code_ = static_cast<int>(*code);
    }
    if (const auto value = root.find("child-pid")) {
      if (const auto pid = parse_decimal(value->text())) meet(static_cast<pid_t>(*pid));
    }
  }

  // The server's process waits, and is limited before it runs.
  void meet(pid_t pid) {
    sys::Fd server(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    // bwrap is not reaped yet, so a process with this parent is its child and no other.
    const auto status = sys::read_file(format("/proc/{}/status", pid), 65536);
    if (server.get() < 0 || !status || !status->contains(format("\nPPid:\t{}\n", process_.pid))) {
      return;
    }
    pid_ = pid;
    server_ = std::move(server);
    for (const sandbox::BoundLimit& limit : limits_) {
      const rlimit value{.rlim_cur = limit.value, .rlim_max = limit.value};
      if (::prlimit(pid, static_cast<__rlimit_resource>(limit.resource), &value, nullptr) != 0) {
        refusal_ = Refusal{.message = format("a limit cannot be set: {}", std::strerror(errno)),
                           .help = "see capgate doctor"};
        return kill();
      }
    }
    const char go = 0;
    (void)!::write(gate_.get(), &go, 1);
    gate_ = sys::Fd();
  }

  std::vector<sandbox::BoundLimit> limits_;
  sys::Fd status_;
  sys::Fd gate_;
  sys::Fd server_;  // pidfd of pid 1 inside
  pid_t pid_ = -1;
  std::string said_;
  std::optional<int> exit_code_;
  std::optional<Refusal> refusal_;
  int ended_by_ = 0;
  bool is_killed_ = false;
};

}  // namespace

std::expected<std::unique_ptr<Server>, Refusal> start_bwrap(const Parts& parts) {
  auto server = std::make_unique<Bwrap>(sandbox::within_own(parts.limits.rlimits()));
  if (auto started = server->start(parts); !started) {
    return std::unexpected(std::move(started).error());
  }
  return server;
}

}  // namespace capgate::engines
