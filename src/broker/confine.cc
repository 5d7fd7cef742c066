#include "broker/confine.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "base/format.h"
#include "core/syscalls.h"
#include "lower/bpf.h"
#include "lower/seccomp.h"
#include "sandbox/landlock.h"
#include "sys/fd.h"

namespace capgate::broker {
namespace {

using core::syscall_list;

constexpr auto needed =
    syscall_list({"read",        "write",       "readv",          "writev",       "pread64",
                  "lseek",       "close",       "ftruncate",      "fdatasync",    "pipe2",
                  "splice",      "stat",        "fstat",          "lstat",        "newfstatat",
                  "statx",       "openat",      "open",           "access",       "faccessat",
                  "readlink",    "readlinkat",  "connect",        "accept4",      "bind",
                  "getsockname", "getpeername", "getsockopt",     "setsockopt",   "shutdown",
                  "sendto",      "recvfrom",    "sendmsg",        "recvmsg",      "sendmmsg",
                  "recvmmsg",    "poll",        "ppoll",          "epoll_wait",   "epoll_pwait",
                  "epoll_ctl",   "brk",         "mmap",           "munmap",       "mremap",
                  "madvise",     "mprotect",    "clock_gettime",  "clock_getres", "gettimeofday",
                  "time",        "getrandom",   "futex",          "getpid",       "gettid",
                  "getuid",      "geteuid",     "getgid",         "getegid",      "uname",
                  "sysinfo",     "sched_yield", "rt_sigprocmask", "rt_sigaction", "rt_sigreturn",
                  "exit",        "exit_group",  "restart_syscall"});

[[maybe_unused]] constexpr rlim_t most_memory = 512U << 20U;

lower::Arch arch() {
#if defined(__aarch64__)
  return lower::Arch::aarch64;
#else
  return lower::Arch::x86_64;
#endif
}

std::string failed(std::string_view what) { return format("{}: {}", what, std::strerror(errno)); }

// Where resolv.conf and hosts are, and where they lead: a resolver service keeps them elsewhere.
std::set<std::string> readable_directories() {
  std::set<std::string> out = {"/etc"};
  for (const char* file : {"/etc/hosts", "/etc/resolv.conf"}) {
    std::array<char, PATH_MAX> real{};
    if (::realpath(file, real.data()) == nullptr) continue;
    const std::string_view path(real.data());
    out.emplace(path.substr(0, path.rfind('/')));
  }
  return out;
}

// A broker that needs more has a mistake, or is being abused: it ends and is replaced, and the host
// keeps its memory. What relays may hold back is far less (seal/buffer_budget.h). Sanitizers need
// more than this to begin with.
std::string limit_memory() {
#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  const rlimit limit{.rlim_cur = most_memory, .rlim_max = most_memory};
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) return failed("RLIMIT_DATA");
#endif
  return {};
}

std::string limit_files(const Needs& needs) {
  const int abi = sandbox::probe_landlock_abi();
  if (abi < 1) return "this kernel has no Landlock";
  struct {
    std::uint64_t handled;
    std::uint64_t network = 0;
    std::uint64_t scoped;
  } const attributes{.handled = sandbox::landlock_handled(abi),
                     .scoped = sandbox::landlock_scoped(abi)};
  const sys::Fd rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes,
                                                 sandbox::landlock_attribute_size(abi), 0)));
  if (rules.get() < 0) return failed("landlock_create_ruleset");
  const std::uint64_t read_file = sandbox::landlock_access({"read_file"}, abi);
  const std::uint64_t read_below = sandbox::landlock_access({"read_file", "read_dir"}, abi);
  std::set<std::string> readable = readable_directories();
  readable.insert(needs.readable.begin(), needs.readable.end());
  for (const std::string& path : readable) {
    const sys::Fd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat info{};
    if (place.get() < 0 || ::fstat(place.get(), &info) != 0) continue;
    const landlock_path_beneath_attr rule{
        .allowed_access = S_ISDIR(info.st_mode) ? read_below : read_file, .parent_fd = place.get()};
    if (::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
      return failed("landlock_add_rule");
    }
  }
  if (::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) {
    return failed("landlock_restrict_self");
  }
  return {};
}

std::string limit_calls(const Needs& needs) {
  std::vector<lower::Rule> rules;
  rules.reserve(needed.size() + 8);
  for (const core::SyscallId call : needed) rules.push_back({call, lower::allow});
  if (needs.locked_memory) rules.push_back({core::syscall("mlock"), lower::allow});
  constexpr std::uint32_t all = ~0U;
  for (const std::uint32_t family : {std::uint32_t{AF_INET}, std::uint32_t{AF_INET6}}) {
    rules.push_back({core::syscall("socket"),
                     lower::allow,
                     {lower::ArgTest{.arg = 0, .mask = all, .value = family}}});
  }
  // Of fcntl, nothing that has signals sent to others.
  for (const int command : {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_SETPIPE_SZ}) {
    const auto value = static_cast<std::uint32_t>(command);
    rules.push_back({core::syscall("fcntl"),
                     lower::allow,
                     {lower::ArgTest{.arg = 1, .mask = all, .value = value}}});
  }
  const lower::BpfProgram program = lower::assemble(arch(), rules);
  std::vector<sock_filter> filter;
  filter.reserve(program.code.size());
  for (const auto& [code, jt, jf, k] : program.code) filter.push_back({code, jt, jf, k});
  const sock_fprog to_kernel{.len = static_cast<unsigned short>(filter.size()),
                             .filter = filter.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &to_kernel) != 0) return failed("seccomp");
  return {};
}

}  // namespace

std::string confine(const Needs& needs) {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed("PR_SET_DUMPABLE");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("PR_SET_NO_NEW_PRIVS");
  if (std::string why = limit_memory(); !why.empty()) return why;
  if (std::string why = limit_files(needs); !why.empty()) return why;
  return limit_calls(needs);
}

}  // namespace capgate::broker
