#include "lower/seccomp.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <set>

#include "lower/bpf.h"
#include "lower/seccomp_groups.h"
#include "lower/seccomp_shared.h"
#include "support/bpf_interpreter.h"

namespace capgate::lower {
namespace {

using Args = std::array<std::uint64_t, 6>;
using Values = std::initializer_list<std::uint64_t>;

constexpr std::uint64_t junk = 0xdeadbeef00000000;  // the upper half of an int argument
constexpr SeccompNeeds nothing{};
constexpr SeccompNeeds with_processes{.processes = true};
constexpr SeccompNeeds with_browser{.processes = true, .nested_sandbox = true};
constexpr SeccompNeeds with_token{.exec_token = true};

std::string answer_text(std::uint32_t k) {
  if (k == bpf::answer_allow) return "allow";
  if (k == bpf::answer_kill_process) return "kill process";
  return describe(Action{ActionKind::error, static_cast<Errno>(k & 0xffff)});
}

std::string ask(Arch arch, const SeccompNeeds& needs, std::string_view call, Args args) {
  const int number = syscall_number(arch, core::find_syscall(call).value());
  if (number == core::absent) return "absent";
  const BpfProgram& filter = shared_filter(arch, needs).program;
  return answer_text(test::interpret(
      filter.code, {.nr = static_cast<std::uint32_t>(number),
                    .arch = arch == Arch::x86_64 ? bpf::audit_x86_64 : bpf::audit_aarch64,
                    .args = args}));
}

struct Case {
  std::string_view call;
  Args args;
  std::string_view answer;
};

// On both architectures, and again with junk in the upper halves: the kernel does not look there.
void expect_answers(const SeccompNeeds& needs, const std::vector<Case>& cases) {
  for (const auto& [call, args, answer] : cases) {
    Args with_junk = args;
    for (std::uint64_t& arg : with_junk) {
      arg |= junk;
    }
    for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
      const std::string got = ask(arch, needs, call, args);
      if (got == "absent") continue;
      EXPECT_EQ(got, answer) << call << " arch " << static_cast<int>(arch);
      EXPECT_EQ(ask(arch, needs, call, with_junk), answer) << call << " with junk";
    }
  }
}

TEST(SeccompFilter, KillsTheProcessOnAnotherArchitecture) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    const BpfProgram& filter = shared_filter(arch, nothing).program;
    for (const std::uint32_t audit : {0x40000003U, 0x40000028U, 0x0U, 0xffffffffU}) {  // i386, arm
      EXPECT_EQ(test::interpret(filter.code, {.nr = 0, .arch = audit}), bpf::answer_kill_process);
    }
  }
  EXPECT_EQ(test::interpret(shared_filter(Arch::aarch64, nothing).program.code,
                            {.nr = 0, .arch = bpf::audit_x86_64}),
            bpf::answer_kill_process);
}

TEST(SeccompFilter, KillsTheProcessOnX32Numbers) {
  const BpfProgram& filter = shared_filter(Arch::x86_64, nothing).program;
  for (const std::uint32_t nr : {0x40000000U, 0x40000027U, 0x40000200U, 0x80000000U, 0xffffffffU}) {
    EXPECT_EQ(test::interpret(filter.code, {.nr = nr, .arch = bpf::audit_x86_64}),
              bpf::answer_kill_process)
        << nr;
  }
}

TEST(SeccompFilter, AnswersEnosysToNumbersThatNobodyHas) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    const std::uint32_t audit = arch == Arch::x86_64 ? bpf::audit_x86_64 : bpf::audit_aarch64;
    for (const std::uint32_t nr : {337U, 400U, 471U, 600U, 0x3fffffffU}) {
      if (arch == Arch::aarch64 && nr < 424) continue;
      EXPECT_EQ(test::interpret(shared_filter(arch, nothing).program.code, {nr, audit}),
                bpf::answer_errno | 38U)
          << nr;
    }
  }
}

TEST(SeccompFilter, LetsRuntimesDoTheirOrdinaryWork) {
  for (const std::string_view call : {"read",
                                      "mmap",
                                      "futex",
                                      "rseq",
                                      "membarrier",
                                      "epoll_wait",
                                      "epoll_pwait2",
                                      "eventfd2",
                                      "timerfd_create",
                                      "inotify_init1",
                                      "statx",
                                      "getrandom",
                                      "prlimit64",
                                      "sched_getaffinity",
                                      "sched_setaffinity",
                                      "madvise",
                                      "copy_file_range",
                                      "pidfd_open",
                                      "accept4",
                                      "sendmmsg",
                                      "rt_sigreturn",
                                      "clock_nanosleep",
                                      "faccessat2",
                                      "close_range",
                                      "arch_prctl",
                                      "setsockopt",
                                      "landlock_restrict_self",
                                      "mseal",
                                      "wait4",
                                      "setresuid"}) {
    expect_answers(nothing, {{call, {}, "allow"}});
  }
}

TEST(SeccompFilter, RefusesSetIdBitsInEveryCallThatTakesAMode) {
  constexpr std::uint64_t o_creat = 0100;
  constexpr std::uint64_t o_tmpfile = 020000000;
  for (const std::uint64_t bad : Values{04755, 02755, 06755, 04000}) {
    expect_answers(nothing, {
                                {"chmod", {0, bad}, "EPERM"},
                                {"fchmod", {3, bad}, "EPERM"},
                                {"fchmodat", {0, 0, bad}, "EPERM"},
                                {"fchmodat2", {0, 0, bad}, "EPERM"},
                                {"creat", {0, bad}, "EPERM"},
                                {"mkdir", {0, bad}, "EPERM"},
                                {"mkdirat", {0, 0, bad}, "EPERM"},
                                {"open", {0, o_creat | 2, bad}, "EPERM"},
                                {"open", {0, o_tmpfile | 2, bad}, "EPERM"},
                                {"openat", {0, 0, o_creat, bad}, "EPERM"},
                                {"openat", {0, 0, o_tmpfile, bad}, "EPERM"},
                                {"mknod", {0, 0100000 | bad}, "EPERM"},
                                {"mknodat", {0, 0, 0010000 | bad}, "EPERM"},
                            });
  }
}

TEST(SeccompFilter, AllowsOrdinaryModesAndTheStickyBit) {
  for (const std::uint64_t mode : Values{0, 0644, 0755, 0777, 01777}) {
    expect_answers(nothing, {
                                {"chmod", {0, mode}, "allow"},
                                {"fchmod", {3, mode}, "allow"},
                                {"fchmodat", {0, 0, mode}, "allow"},
                                {"fchmodat2", {0, 0, mode}, "allow"},
                                {"creat", {0, mode}, "allow"},
                                {"mkdir", {0, mode}, "allow"},
                                {"mkdirat", {0, 0, mode}, "allow"},
                                {"open", {0, 0101, mode}, "allow"},
                                {"openat", {0, 0, 0101, mode}, "allow"},
                            });
  }
}

TEST(SeccompFilter, IgnoresTheModeOfAnOpenThatCreatesNothing) {
  expect_answers(nothing, {{"open", {0, 0, 0xffffffff}, "allow"},
                           {"openat", {0, 0, 0x80000, 07777}, "allow"}});
}

TEST(SeccompFilter, MakesPlainFilesAndPipesButNoDevicesAndSockets) {
  expect_answers(nothing, {
                              {"mknod", {0, 0644}, "allow"},
                              {"mknod", {0, 0100644}, "allow"},
                              {"mknodat", {0, 0, 0010644}, "allow"},
                              {"mknod", {0, 0020666}, "EPERM"},       // character device
                              {"mknodat", {0, 0, 0060666}, "EPERM"},  // block device
                              {"mknodat", {0, 0, 0140644}, "EPERM"},  // socket
                              {"mknodat", {0, 0, 0040755}, "EPERM"},  // directory
                          });
}

constexpr std::uint64_t thread_flags = 0x3d0f00;  // what glibc's pthread_create passes
constexpr std::uint64_t fork_flags = 0x1200011;   // what glibc's fork passes
constexpr std::uint64_t spawn_flags = 0x4111;     // CLONE_VM | CLONE_VFORK | SIGCHLD

TEST(SeccompFilter, MakesThreadsButNoProcessesWithoutAnExecCapability) {
  expect_answers(nothing, {{"clone", {thread_flags}, "allow"},
                           {"clone", {fork_flags}, "EPERM"},
                           {"clone", {spawn_flags}, "EPERM"},
                           {"clone", {0}, "EPERM"},
                           {"fork", {}, "EPERM"},
                           {"vfork", {}, "EPERM"},
                           {"clone3", {}, "ENOSYS"}});
}

TEST(SeccompFilter, MakesProcessesWithAnExecCapability) {
  expect_answers(with_processes, {{"clone", {thread_flags}, "allow"},
                                  {"clone", {fork_flags}, "allow"},
                                  {"clone", {spawn_flags}, "allow"},
                                  {"clone", {0x5111}, "allow"},  // with CLONE_PIDFD, as Go
                                  {"fork", {}, "allow"},
                                  {"vfork", {}, "allow"},
                                  {"clone3", {}, "ENOSYS"}});
}

TEST(SeccompFilter, MakesNoNamespacesForAnybodyButABrowser) {
  for (const std::uint64_t flag :
       Values{0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000}) {
    for (const SeccompNeeds& needs : {nothing, with_processes}) {
      expect_answers(needs, {{"clone", {flag | 17}, "EPERM"},
                             {"clone", {flag | thread_flags}, "EPERM"},
                             {"unshare", {flag}, "EPERM"},
                             {"setns", {3, flag}, "EPERM"}});
    }
  }
  expect_answers(with_processes, {{"unshare", {0x200}, "EPERM"}, {"chroot", {}, "EPERM"}});
}

TEST(SeccompFilter, LetsABrowserMakeItsSandboxButNeverMount) {
  for (const std::uint64_t flag :
       Values{0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x70000000}) {
    expect_answers(with_browser, {{"clone", {flag | 17}, "allow"}, {"unshare", {flag}, "allow"}});
  }
  for (const std::uint64_t flag : Values{0x20000, 0x2000000, 0x4000000, 0x10020000}) {
    expect_answers(with_browser, {{"clone", {flag | 17}, "EPERM"}, {"unshare", {flag}, "EPERM"}});
  }
  expect_answers(with_browser, {
                                   {"chroot", {}, "allow"},
                                   {"unshare", {0x80}, "EPERM"},  // time namespace
                                   {"setns", {}, "EPERM"},
                                   {"mount", {}, "EPERM"},
                                   {"pivot_root", {}, "EPERM"},
                                   {"memfd_create", {}, "ENOSYS"},
                                   {"setsockopt", {3, 0, 64}, "EPERM"},
                                   {"setsockopt", {3, 41, 64}, "EPERM"},
                                   {"setsockopt", {3, 0, 96}, "EPERM"},
                                   {"setsockopt", {3, 0, 128}, "EPERM"},
                                   {"setsockopt", {3, 1, 64}, "allow"},
                                   {"setsockopt", {3, 0, 10}, "allow"},
                                   {"setsockopt", {3, 41, 26}, "allow"},  // IPV6_V6ONLY
                                   {"setsockopt", {3, 41, 67}, "allow"}   // IPV6_TCLASS
                               });
}

TEST(SeccompFilter, RefusesWhatReachesBeyondTheSandbox) {
  for (const std::string_view call : {"mount",
                                      "umount2",
                                      "pivot_root",
                                      "chroot",
                                      "open_tree",
                                      "open_tree_attr",
                                      "move_mount",
                                      "fsopen",
                                      "fsconfig",
                                      "fsmount",
                                      "fspick",
                                      "mount_setattr",
                                      "setns",
                                      "unshare",
                                      "ptrace",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "process_madvise",
                                      "kcmp",
                                      "pidfd_getfd",
                                      "keyctl",
                                      "add_key",
                                      "request_key",
                                      "bpf",
                                      "perf_event_open",
                                      "userfaultfd",
                                      "kexec_load",
                                      "kexec_file_load",
                                      "init_module",
                                      "finit_module",
                                      "delete_module",
                                      "reboot",
                                      "swapon",
                                      "swapoff",
                                      "sethostname",
                                      "setdomainname",
                                      "settimeofday",
                                      "clock_settime",
                                      "clock_adjtime",
                                      "adjtimex",
                                      "iopl",
                                      "ioperm",
                                      "syslog",
                                      "acct",
                                      "vhangup",
                                      "quotactl",
                                      "quotactl_fd",
                                      "name_to_handle_at",
                                      "open_by_handle_at",
                                      "fanotify_init",
                                      "fanotify_mark",
                                      "lookup_dcookie"}) {
    for (const SeccompNeeds& needs : {nothing, with_processes, with_token}) {
      expect_answers(needs, {{call, {}, "EPERM"}});
    }
  }
}

TEST(SeccompFilter, HidesWhatItCannotSeeThrough) {
  for (const std::string_view call : {"clone3", "openat2", "io_uring_setup", "io_uring_enter",
                                      "io_uring_register", "statmount", "listmount"}) {
    for (const SeccompNeeds& needs : {nothing, with_processes, with_browser, with_token}) {
      expect_answers(needs, {{call, {}, "ENOSYS"}});
    }
  }
  for (const std::string_view call : {"memfd_secret", "vmsplice", "modify_ldt", "uselib",
                                      "io_submit", "file_setattr", "lsm_set_self_attr"}) {
    expect_answers(nothing, {{call, {}, "ENOSYS"}});
  }
}

TEST(SeccompFilter, MakesTcpAndUdpSocketsOnly) {
  constexpr std::uint64_t flags = 0x80800;  // SOCK_CLOEXEC | SOCK_NONBLOCK
  for (const std::uint64_t family : Values{2, 10}) {
    expect_answers(nothing, {{"socket", {family, 1, 0}, "allow"},
                             {"socket", {family, 1 | flags, 6}, "allow"},
                             {"socket", {family, 2 | flags, 0}, "allow"},
                             {"socket", {family, 2, 17}, "allow"},
                             {"socket", {family, 1, 132}, "EPROTONOSUPPORT"},  // SCTP
                             {"socket", {family, 1, 262}, "EPROTONOSUPPORT"},  // MPTCP
                             {"socket", {family, 2, 1}, "EPROTONOSUPPORT"},    // ICMP
                             {"socket", {family, 2, 6}, "EPROTONOSUPPORT"},
                             {"socket", {family, 3, 6}, "EPERM"},  // raw
                             {"socket", {family, 3 | flags, 255}, "EPERM"},
                             {"socket", {family, 5, 132}, "EPERM"},  // seqpacket
                             {"socket", {family, 10, 0}, "EPERM"}});
  }
}

TEST(SeccompFilter, KnowsNoOtherSocketFamily) {
  for (std::uint64_t family = 0; family < 64; ++family) {
    if (family == 1 || family == 2 || family == 10) continue;
    expect_answers(nothing, {{"socket", {family, 1, 0}, "EAFNOSUPPORT"},
                             {"socket", {family, 3, 0}, "EAFNOSUPPORT"}});
  }
}

TEST(SeccompFilter, MakesUnixSocketsOnlyWithAnIpcGrant) {
  expect_answers(nothing, {{"socket", {1, 1, 0}, "EPERM"}, {"socket", {1, 2, 0}, "EPERM"}});
  const SeccompNeeds granted{.unix_sockets = true};
  expect_answers(granted, {{"socket", {1, 1, 0}, "allow"}, {"socket", {1, 0x80002, 0}, "allow"}});
}

TEST(SeccompFilter, LetsTheForwarderForkAndConnectToASocketAndNothingElse) {
  expect_answers({.forwarder = true}, {{"socket", {1, 1, 0}, "allow"},
                                       {"socket", {1, 0x80801, 0}, "allow"},
                                       {"socket", {1, 2, 0}, "EPERM"},
                                       {"socket", {1, 3, 0}, "EPERM"},
                                       {"socket", {1, 5, 0}, "EPERM"},
                                       {"socketpair", {1, 2, 0}, "EPERM"},
                                       {"clone", {17}, "allow"},
                                       {"fork", {}, "allow"},
                                       {"clone", {0x10000000 | 17}, "EPERM"},
                                       {"memfd_create", {}, "ENOSYS"}});
  expect_answers({.unix_sockets = true, .forwarder = true}, {{"socket", {1, 2, 0}, "allow"}});
}

TEST(SeccompFilter, MakesRouteNetlinkSocketsOnlyWhenGranted) {
  expect_answers(nothing, {{"socket", {16, 3, 0}, "EAFNOSUPPORT"}});
  const SeccompNeeds granted{.netlink_route = true};
  expect_answers(granted, {{"socket", {16, 0x80003, 0}, "allow"},
                           {"socket", {16, 3, 12}, "EAFNOSUPPORT"},    // netfilter
                           {"socket", {16, 3, 16}, "EAFNOSUPPORT"}});  // generic
}

TEST(SeccompFilter, MakesConnectedPairsOnly) {
  expect_answers(nothing, {{"socketpair", {1, 1, 0}, "allow"},
                           {"socketpair", {1, 0x80805, 0}, "allow"},
                           {"socketpair", {1, 2, 0}, "EPERM"},
                           {"socketpair", {1, 3, 0}, "EPERM"},
                           {"socketpair", {30, 1, 0}, "EPERM"}});
}

TEST(SeccompFilter, RefusesTerminalInjection) {
  expect_answers(nothing, {{"ioctl", {0, 0x5412}, "EPERM"},
                           {"ioctl", {0, 0x541c}, "EPERM"},
                           {"ioctl", {0, 0x541d}, "EPERM"},
                           {"ioctl", {0, 0x5423}, "EPERM"},
                           {"ioctl", {0, 0x5413}, "allow"},    // TIOCGWINSZ
                           {"ioctl", {0, 0x5401}, "allow"},    // TCGETS
                           {"ioctl", {0, 0x541b}, "allow"}});  // FIONREAD
}

TEST(SeccompFilter, RefusesQuestionsAboutInterfaces) {
  expect_answers(nothing, {{"ioctl", {0, 0x8905}, "allow"},    // SIOCATMARK
                           {"ioctl", {0, 0x8912}, "EPERM"},    // SIOCGIFCONF
                           {"ioctl", {0, 0x8927}, "EPERM"},    // SIOCGIFHWADDR
                           {"ioctl", {0, 0x8933}, "EPERM"},    // SIOCGIFINDEX
                           {"ioctl", {0, 0x894c}, "EPERM"},    // SIOCGSKNS
                           {"ioctl", {0, 0x89ff}, "EPERM"},    // private to a device
                           {"ioctl", {0, 0x8b01}, "EPERM"},    // SIOCGIWNAME
                           {"ioctl", {0, 0x8a00}, "allow"}});  // none of them
}

TEST(SeccompFilter, FixesAttributesForGrantsThatAreWeakerThanWriting) {
  const SeccompNeeds weak{.fixed_attributes = true};
  for (const std::string_view call :
       {"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchownat", "utime", "utimensat",
        "setxattr", "fsetxattr", "removexattr", "setxattrat"}) {
    expect_answers(nothing, {{call, {}, "allow"}});
    expect_answers(weak, {{call, {}, "EPERM"}});
  }
  expect_answers(weak, {{"mkdir", {0, 0755}, "allow"}, {"getxattr", {}, "allow"}});
}

TEST(SeccompFilter, RefusesLeases) {
  expect_answers(nothing, {{"fcntl", {0, 1024}, "EPERM"},  // F_SETLEASE
                           {"fcntl", {0, 1040}, "EPERM"},  // F_SETDELEG
                           {"fcntl", {0, 1025}, "allow"},  // F_GETLEASE
                           {"fcntl", {0, 1030}, "allow"},  // F_DUPFD_CLOEXEC
                           {"fcntl", {0, 1033}, "allow"},  // F_ADD_SEALS
                           {"fcntl", {0, 1036}, "allow"},  // F_SET_RW_HINT
                           {"fcntl", {0, 32}, "EPERM"},    // no command
                           {"fcntl", {0, 6}, "allow"}});   // F_SETLK
}

TEST(SeccompFilter, LetsAProcessControlOnlyItself) {
  expect_answers(nothing, {{"prctl", {15}, "allow"},
                           {"prctl", {38, 1}, "allow"},
                           {"prctl", {0x53564d41}, "allow"},
                           {"prctl", {35}, "EPERM"},          // PR_SET_MM
                           {"prctl", {28}, "EPERM"},          // PR_SET_SECUREBITS
                           {"prctl", {59}, "EPERM"},          // syscall user dispatch
                           {"prctl", {0x59616d61}, "EPERM"},  // PR_SET_PTRACER
                           {"prctl", {0xffffffff}, "EPERM"},
                           {"personality", {0}, "allow"},
                           {"personality", {0xffffffff}, "allow"},
                           {"personality", {0x0040000}, "EPERM"},  // no randomisation
                           {"personality", {0x0400000}, "EPERM"},  // READ_IMPLIES_EXEC
                           {"seccomp", {1, 0}, "allow"},
                           {"seccomp", {1, 1}, "allow"},
                           {"seccomp", {1, 8}, "EPERM"},
                           {"seccomp", {1, 9}, "EPERM"},
                           {"seccomp", {2}, "allow"},
                           {"seccomp", {7}, "EPERM"}});
}

TEST(SeccompFilter, AllowsFilesInMemoryOnlyWhereNoExecCanFollow) {
  expect_answers(with_token, {{"memfd_create", {}, "allow"}});
  for (const SeccompNeeds& needs :
       {nothing, with_processes, SeccompNeeds{.processes = true, .exec_token = true}}) {
    expect_answers(needs, {{"memfd_create", {}, "ENOSYS"}});
  }
}

TEST(SeccompFilter, LeavesNoMemoryThatNoProcessMapsWhereNoCgroupCountsIt) {
  SeccompNeeds needs = with_token;
  expect_answers(
      needs,
      {{"memfd_create", {}, "allow"}, {"shmget", {}, "allow"}, {"setsockopt", {0, 1, 7}, "allow"}});
  needs.memory_is_mapped = true;
  expect_answers(needs, {{"memfd_create", {}, "ENOSYS"},
                         {"shmget", {}, "ENOSYS"},
                         {"semget", {}, "ENOSYS"},
                         {"msgget", {}, "ENOSYS"},
                         {"setsockopt", {0, 1, 7}, "skipped"},
                         {"setsockopt", {0, 1, 8}, "skipped"},
                         {"setsockopt", {0, 1, 9}, "allow"},
                         {"setsockopt", {0, 6, 7}, "allow"}});
}

TEST(SeccompFilter, LetsAnEngineWithoutTokenExecByPath) {
  expect_answers(nothing, {{"execve", {}, "allow"}, {"execveat", {}, "EPERM"}});
}

TEST(SeccompFilter, LetsChildrenExecWithAnExecCapability) {
  for (const bool token : {false, true}) {
    expect_answers({.processes = true, .exec_token = token},
                   {{"execve", {}, "allow"}, {"execveat", {}, "allow"}});
  }
}

TEST(SeccompFilter, HasOnePlaceForEachCall) {
  std::map<core::SyscallId, std::string_view> seen;
  for (const auto groups : {allowed_groups(), refused_groups()}) {
    for (const CallGroup& group : groups) {
      for (const core::SyscallId call : group.calls) {
        EXPECT_TRUE(seen.emplace(call, group.purpose).second)
            << core::syscall_info(call).name << " is in " << group.purpose << " and " << seen[call];
      }
    }
  }
  // Rules of one call stand together, and nothing follows the one that always applies.
  std::set<core::SyscallId> finished;
  for (const Rule& rule : seccomp_rules(nothing)) {
    EXPECT_FALSE(finished.contains(rule.call)) << core::syscall_info(rule.call).name;
    if (is_always_true(rule.when[0])) finished.insert(rule.call);
  }
}

TEST(SeccompRules, ReadAsOneLineEach) {
  const std::vector<Rule> rules{
      {core::syscall("read"), allow},
      {core::syscall("openat"), not_permitted, {{{.arg = 3, .mask = 06000, .value = 0}}}},
      {core::syscall("execve"), allow, {{{.kind = TestKind::token, .arg = 3}}}},
      {core::syscall("reboot"),
       kill_process,
       {{{.arg = 0, .mask = 0xffffffff, .value = 7}, {.arg = 1, .mask = 1, .value = 1}}}},
  };
  EXPECT_EQ(dump(rules),
            "read: allow\n"
            "openat: EPERM if (arg3 & 0xc00) == 0x0\n"
            "execve: allow if arg3 == token\n"
            "reboot: kill process if arg0 == 0x7 and (arg1 & 0x1) == 0x1\n");
}

}  // namespace
}  // namespace capgate::lower
