#include "unpack/confine.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "core/syscalls.h"
#include "lower/bpf.h"
#include "lower/seccomp.h"
#include "sandbox/landlock.h"
#include "sys/fd.h"

namespace capgate::unpack {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CAPGATE_SHADOW_MEMORY 1  // terabytes of addresses, of which little is used
#endif
#endif

constexpr auto needed =
    core::syscall_list({"read", "pread64", "write", "brk", "mmap", "munmap", "mremap", "madvise",
                        "exit", "exit_group", "rt_sigreturn"});

struct Limit {
  __rlimit_resource what;
  rlim_t most;
};
constexpr Limit limits[] = {
    {RLIMIT_CORE, 0},
    {RLIMIT_FSIZE, 0},
    {RLIMIT_NPROC, 0},
    {RLIMIT_CPU, 10},
    {RLIMIT_NOFILE, 0},
#ifndef CAPGATE_SHADOW_MEMORY
    {RLIMIT_AS, rlim_t{256} << 20},
#endif
};

lower::Arch arch() {
#if defined(__aarch64__)
  return lower::Arch::aarch64;
#else
  return lower::Arch::x86_64;
#endif
}

std::string failed(std::string_view what) { return format("{}: {}", what, std::strerror(errno)); }

// A ruleset without rules: no file can be opened, made or run.
std::string give_up_files() {
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
  if (::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) {
    return failed("landlock_restrict_self");
  }
  return {};
}

// No new descriptor can be had any more, so it comes after what needs one.
std::string limit_resources() {
  for (const Limit& limit : limits) {
    const rlimit value{.rlim_cur = limit.most, .rlim_max = limit.most};
    if (::setrlimit(limit.what, &value) != 0) return failed("setrlimit");
  }
  return {};
}

std::string give_up_calls() {
  std::vector<lower::Rule> rules;
  rules.reserve(needed.size());
  for (const core::SyscallId call : needed) rules.push_back({call, lower::allow});
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

std::string confine() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed("PR_SET_DUMPABLE");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("PR_SET_NO_NEW_PRIVS");
  if (std::string why = give_up_files(); !why.empty()) return why;
  if (std::string why = limit_resources(); !why.empty()) return why;
  return give_up_calls();
}

}  // namespace capgate::unpack
