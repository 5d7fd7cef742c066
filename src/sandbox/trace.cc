#include "sandbox/trace.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/path.h"
#include "lower/common.h"
#include "sandbox/landlock.h"
#include "sandbox/stderr_copy.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

using core::syscall;
using core::SyscallId;

constexpr PathCall path_calls[] = {
    {syscall("access"), 0},
    {syscall("chdir"), 0},
    {syscall("chmod"), 0, -1, true},
    {syscall("creat"), 0, -1, true},
    {syscall("faccessat"), 1, 0},
    {syscall("faccessat2"), 1, 0},
    {syscall("fchmodat"), 1, 0, true},
    {syscall("link"), 1, -1, true},
    {syscall("linkat"), 3, 2, true},
    {syscall("lstat"), 0},
    {syscall("mkdir"), 0, -1, true},
    {syscall("mkdirat"), 1, 0, true},
    {syscall("newfstatat"), 1, 0},
    {syscall("open"), 0},
    {syscall("openat"), 1, 0},
    {syscall("readlink"), 0},
    {syscall("readlinkat"), 1, 0},
    {syscall("rename"), 0, -1, true},
    {syscall("rename"), 1, -1, true},
    {syscall("renameat"), 1, 0, true},
    {syscall("renameat"), 3, 2, true},
    {syscall("renameat2"), 1, 0, true},
    {syscall("renameat2"), 3, 2, true},
    {syscall("rmdir"), 0, -1, true},
    {syscall("stat"), 0},
    {syscall("statx"), 1, 0},
    {syscall("symlink"), 1, -1, true},
    {syscall("symlinkat"), 2, 1, true},
    {syscall("truncate"), 0, -1, true},
    {syscall("unlink"), 0, -1, true},
    {syscall("unlinkat"), 1, 0, true},
};
constexpr SyscallId other_calls[] = {syscall("clone"),    syscall("connect"), syscall("execve"),
                                     syscall("execveat"), syscall("fork"),    syscall("socket"),
                                     syscall("vfork")};

bool is_path_call(SyscallId call) {
  return std::ranges::find(path_calls, call, &PathCall::call) != std::end(path_calls);
}

bool is_asked(SyscallId call) { return is_path_call(call) || contains(other_calls, call); }

// An errno that no rule uses marks the questions until the program is assembled.
constexpr auto question_mark = static_cast<lower::Errno>(4095);
constexpr std::uint32_t answer_question = SECCOMP_RET_USER_NOTIF;

bool holds(const lower::ArgTest& test, const seccomp_data& call, const lower::ExecToken& token) {
  const std::uint64_t value = call.args[test.arg];
  if (test.kind == lower::TestKind::token) {
    // execve carries the words 0 to 5 in its arguments 3 to 5, execveat the last two in its own 5.
    const std::size_t word = 2U * (static_cast<std::size_t>(test.arg) - 3U);
    const std::uint64_t wanted =
        std::uint64_t{token[word]} | (std::uint64_t{token[word + 1]} << 32U);
    return value == wanted;
  }
  return (static_cast<std::uint32_t>(value) & test.mask) == test.value;
}

std::string read_memory(pid_t pid, std::uint64_t address, std::size_t most) {
  std::string out(most, '\0');
  std::size_t have = 0;
  // In steps that do not cross a page: the text may end right before one that is not mapped.
  while (have < most) {
    constexpr std::size_t page = 4096;
    const std::size_t size = std::min(most - have, page - (address + have) % page);
    const iovec local{out.data() + have, size};
    const iovec remote{reinterpret_cast<void*>(address + have), size};
    const ssize_t got = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
    if (std::memchr(local.iov_base, 0, static_cast<std::size_t>(got)) != nullptr) break;
  }
  out.resize(have);
  return out;
}

std::string read_text(pid_t pid, std::uint64_t address) {
  const std::string bytes = read_memory(pid, address, 4096);
  return bytes.substr(0, bytes.find('\0'));
}

constexpr std::uint16_t dns_port = 53;

// Only ever asked about the sandbox's own tree, which the server sees itself.
bool exists(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace

struct Tracer::Question {
  pid_t pid = 0;
  const seccomp_data& call;
};

lower::BpfProgram traced_filter(lower::Arch arch, const std::vector<lower::Rule>& rules) {
  std::vector<lower::Rule> asked = rules;
  for (lower::Rule& rule : asked) {
    if (is_asked(rule.call)) {
      rule.action = {.kind = lower::ActionKind::error, .error = question_mark};
    }
  }
  lower::BpfProgram program = lower::assemble(arch, asked);
  const std::uint32_t mark = lower::bpf::answer_errno | static_cast<std::uint32_t>(question_mark);
  for (lower::BpfInstruction& instruction : program.code) {
    if (instruction.code == lower::bpf::answer && instruction.k == mark) {
      instruction.k = answer_question;
    }
  }
  return program;
}

lower::Action Tracer::decide(const seccomp_data& call) const {
  for (const lower::Rule& rule : rules_) {
    if (lower::syscall_number(arch_, rule.call) != call.nr) continue;
    const bool applies = std::ranges::all_of(
        rule.when, [&](const lower::ArgTest& test) { return holds(test, call, token_); });
    if (applies) return rule.action;
  }
  return lower::not_there;
}

void Tracer::step() {
  seccomp_notif question{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) {
    if (errno != EINTR && errno != ENOENT) listener_ = sys::Fd();
    return;
  }
  asked_ = question.id;
  const lower::Action action = decide(question.data);
  observe(question, action);
  seccomp_notif_resp answer{};
  answer.id = question.id;
  if (action.kind == lower::ActionKind::allow) {
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  } else {
    answer.error =
        action.kind == lower::ActionKind::error ? -static_cast<int>(action.error) : -EPERM;
  }
  (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void Tracer::observe(const seccomp_notif& asked, const lower::Action& action) {
  const Question question{.pid = static_cast<pid_t>(asked.pid), .call = asked.data};
  const auto rule = std::ranges::find_if(rules_, [&](const lower::Rule& known) {
    return lower::syscall_number(arch_, known.call) == asked.data.nr;
  });
  if (rule == rules_.end()) return;
  const SyscallId call = rule->call;
  const bool refused = action.kind != lower::ActionKind::allow;
  if (is_path_call(call)) {
    for (const PathCall& path : path_calls) {
      if (path.call == call) observe_call(question, path);
    }
  } else if (call == syscall("execve")) {
    observe_program(question, asked.data.args[0]);
  } else if (call == syscall("execveat")) {
    observe_program(question, asked.data.args[1]);
  } else if (call == syscall("connect")) {
    observe_connect(question);
  } else if (call == syscall("socket")) {
    if (refused && asked.data.args[0] == AF_UNIX) {
      say("socket", "a Unix socket", "ipc:connect:self");
    } else if (refused && asked.data.args[0] == AF_NETLINK) {
      say("socket", "a netlink socket", "ipc:connect:netlink-route");
    }
  } else if (refused) {
    say_lacking("start", "a child process", "exec:spawn:", any_program);
  }
}

void Tracer::observe_call(const Question& question, const PathCall& path) {
  const auto& args = question.call.args;
  const bool opens = path.call == syscall("open") || path.call == syscall("openat");
  const std::uint64_t flags = opens ? args[path.path + 1] : 0;
  const bool writes = path.writes || (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
  const int directory = path.directory < 0 ? AT_FDCWD : static_cast<int>(args[path.directory]);
  observe_path(question, args[path.path], directory, writes, path.writes);
}

void Tracer::observe_path(const Question& question, std::uint64_t pointer, int directory,
                          bool writes, bool changes_entry) {
  std::string path = read_text(question.pid, pointer);
  if (path.empty()) return;
  if (!path.starts_with('/')) {
    const std::string base =
        directory == AT_FDCWD
            ? read_link(AT_FDCWD, format("/proc/{}/cwd", question.pid))
            : read_link(AT_FDCWD, format("/proc/{}/fd/{}", question.pid, directory));
    if (!base.starts_with('/')) return;
    path = base + "/" + path;
  }
  path = plain_path(path);
  if (core::is_at_or_below(path, "/proc") || core::is_at_or_below(path, "/dev")) return;
  notice({.kind = TraceNote::Kind::path,
          .writes = writes,
          .changes_entry = changes_entry,
          .is_inside = exists(format("/proc/{}/root{}", question.pid, path)),
          .path = std::move(path)});
}

void Tracer::observe_program(const Question& question, std::uint64_t pointer) {
  std::string path = read_text(question.pid, pointer);
  if (path.empty() || path == bound_.program) return;
  notice({.kind = TraceNote::Kind::program, .path = std::move(path)});
}

void Tracer::observe_connect(const Question& question) {
  const auto size = std::min<std::uint64_t>(question.call.args[2], sizeof(sockaddr_storage));
  std::string bytes(size, '\0');
  const iovec local{bytes.data(), bytes.size()};
  const iovec remote{reinterpret_cast<void*>(question.call.args[1]), bytes.size()};
  if (::process_vm_readv(question.pid, &local, 1, &remote, 1, 0) <
      static_cast<ssize_t>(sizeof(sa_family_t))) {
    return;
  }
  sa_family_t family = 0;
  std::memcpy(&family, bytes.data(), sizeof(family));
  if (family == AF_UNIX) {
    std::string path(bytes.substr(offsetof(sockaddr_un, sun_path)).c_str());
    if (!path.starts_with('/')) return;
    return notice({.kind = TraceNote::Kind::socket,
                   .is_inside = exists(format("/proc/{}/root{}", question.pid, path)),
                   .path = std::move(path)});
  }
  // With a network the broker decides, and tells what it refuses.
  if (!bound_.capture.messages.empty()) return;
  char text[INET6_ADDRSTRLEN] = {};
  std::uint16_t port = 0;
  bool is_local = true;
  if (family == AF_INET && bytes.size() >= sizeof(sockaddr_in)) {
    sockaddr_in address{};
    std::memcpy(&address, bytes.data(), sizeof(address));
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
    port = ntohs(address.sin_port);
    is_local = std::string_view(text).starts_with("127.");
  } else if (family == AF_INET6 && bytes.size() >= sizeof(sockaddr_in6)) {
    sockaddr_in6 address{};
    std::memcpy(&address, bytes.data(), sizeof(address));
    ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
    port = ntohs(address.sin6_port);
    is_local = std::string_view(text) == "::1";
  }
  if (is_local && port == dns_port) {
    return say_lacking("find", "a host by its name", "net:connect:", any_host);
  }
  // What listens in the sandbox itself is no concern of the policy.
  if (const std::string own = format("net:connect:localhost:{}", port);
      is_local && contains(lacking_.capabilities, own)) {
    return say("connect", format("localhost:{}", port), own);
  }
  if (is_local || port == 0) return;
  const std::string host = family == AF_INET6 ? format("[{}]", text) : std::string(text);
  say("connect", format("{}:{}", host, port), format("net:connect:{}:{}", host, port));
}

// Before it is known which one is meant: what the catalog has for this server, or an example.
void Tracer::say_lacking(std::string_view what, std::string_view subject, std::string_view kind,
                         const std::string& example) {
  const std::vector<std::string> known = of_kind(lacking_, kind);
  for (const std::string& capability : known) say(what, subject, capability);
  if (known.empty()) say(what, subject, example);
}

void Tracer::say(std::string_view what, std::string_view subject, const std::string& capability) {
  notice({.kind = TraceNote::Kind::line, .path = format("{}\n{}\n{}", what, subject, capability)});
}

void Tracer::notice(TraceNote note) {
  // If the asking process is gone, its number, and so what was read, may be another one's.
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &asked_) != 0) return;
  writer_.note(note);
}

}  // namespace capgate::sandbox
