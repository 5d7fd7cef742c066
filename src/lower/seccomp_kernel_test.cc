// The filter in a real kernel. Each check runs in a forked child: a test never restricts the
// runner.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

#include "lower/bpf.h"
#include "lower/seccomp_shared.h"

namespace capgate::lower {
namespace {

#ifdef __x86_64__
constexpr Arch here = Arch::x86_64;
#else
constexpr Arch here = Arch::aarch64;
#endif

bool install(const BpfProgram& program) {
  static_assert(sizeof(BpfInstruction) == sizeof(sock_filter));
  std::vector<sock_filter> code;
  code.reserve(program.code.size());
  for (const auto& [operation, jt, jf, k] : program.code) code.push_back({operation, jt, jf, k});
  const sock_fprog filter{.len = static_cast<unsigned short>(code.size()), .filter = code.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

// The wait status of a child that runs `body` under the filter and exits with its result.
int status_under(const BpfProgram& program, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(install(program) ? body() : 255);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

// Exit code 0: every call failed as said. Otherwise the place of the first that did not.
struct Attempt {
  std::function<long()> call;
  int error;  // 0: succeeds
};

void expect_errors(const SeccompNeeds& needs, const std::vector<Attempt>& attempts) {
  const int status = status_under(shared_filter(here, needs).program, [&] {
    int place = 0;
    for (const auto& [call, error] : attempts) {
      ++place;
      errno = 0;
      const long result = call();
      if (error == 0 ? result < 0 : result != -1 || errno != error) return place;
    }
    return 0;
  });
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "is the attempt that went wrong";
}

long start_thread() {
  pthread_t thread{};
  const auto body = [](void*) -> void* { return nullptr; };
  return pthread_create(&thread, nullptr, body, nullptr) == 0 && pthread_join(thread, nullptr) == 0
             ? 0
             : -1;
}

TEST(SeccompInTheKernel, MakesThreadsButNoProcesses) {
  expect_errors({}, {{[] { return start_thread(); }, 0},
                     {[] { return ::syscall(SYS_clone3, nullptr, 0); }, ENOSYS},
                     {[] { return long{fork()}; }, EPERM},
                     {[] { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }, EPERM}});
}

TEST(SeccompInTheKernel, MakesOnlyTheSocketsOfThePolicy) {
  expect_errors({}, {{[] { return long{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}; }, 0},
                     {[] { return long{socket(AF_INET, SOCK_DGRAM, 17)}; }, 0},
                     {[] { return long{socket(AF_NETLINK, SOCK_RAW, 0)}; }, EAFNOSUPPORT},
                     {[] { return long{socket(AF_PACKET, SOCK_RAW, 0)}; }, EAFNOSUPPORT},
                     {[] { return long{socket(AF_VSOCK, SOCK_STREAM, 0)}; }, EAFNOSUPPORT},
                     {[] { return long{socket(AF_UNIX, SOCK_STREAM, 0)}; }, EPERM},
                     {[] {
                        int pair[2];
                        return long{socketpair(AF_UNIX, SOCK_STREAM, 0, pair)};
                      },
                      0}});
  expect_errors({.unix_sockets = true},
                {{[] { return long{socket(AF_UNIX, SOCK_STREAM, 0)}; }, 0}});
}

TEST(SeccompInTheKernel, PlantsNoSetuidFile) {
  const std::string path = testing::TempDir() + "capgate_seccomp_" + std::to_string(getpid());
  const char* name = path.c_str();
  expect_errors({}, {{[&] { return long{open(name, O_CREAT | O_WRONLY, 04755)}; }, EPERM},
                     {[&] { return long{open(name, O_CREAT | O_WRONLY, 0600)}; }, 0},
                     {[&] { return long{chmod(name, 04755)}; }, EPERM},
                     {[&] { return long{chmod(name, 0700)}; }, 0},
                     {[&] { return long{mkdir(name, 02755)}; }, EPERM}});
  struct stat found{};
  ASSERT_EQ(stat(name, &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0700U);
  unlink(name);
}

TEST(SeccompInTheKernel, KeepsNamespacesProcessesAndTerminalsOutOfReach) {
  expect_errors({}, {{[] { return long{unshare(CLONE_NEWUSER)}; }, EPERM},
                     {[] { return ::syscall(SYS_ptrace, 0, 0, 0, 0); }, EPERM},
                     {[] { return ::syscall(SYS_io_uring_setup, 0, nullptr); }, ENOSYS},
                     {[] { return ::syscall(SYS_openat2, -1, nullptr, nullptr, 0); }, ENOSYS},
                     {[] { return ::syscall(SYS_keyctl, 0, 0, 0, 0, 0); }, EPERM},
                     {[] { return ::syscall(599); }, ENOSYS},
                     {[] { return ::syscall(SYS_ioctl, 0, 0x100000000 | TIOCSTI, ""); }, EPERM}});
}

TEST(SeccompInTheKernel, ExecsOnlyWithTheToken) {
  const ExecToken token{0x1234, 0x5678, 9, 10, 0xabcd, 0};
  const auto exec_with = [](unsigned long first) {
    char name[] = "/bin/true";
    char* argv[] = {name, nullptr};
    return ::syscall(SYS_execve, name, argv, nullptr, first, 0xa00000009, 0xabcdUL);
  };
  const BpfProgram program = bind_token(shared_filter(here, {.exec_token = true}).program, token);
  const int status = status_under(program, [&] {
    if (exec_with(0x567800001235) != -1 || errno != EPERM) return 1;
    exec_with(0x567800001234);
    return 2;  // not reached: /bin/true exits with 0
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

#ifdef __x86_64__
TEST(SeccompInTheKernel, KillsOnTheI386CallTable) {
  const auto get_pid_by_int80 = [] {
    long result = 20;  // getpid there. NOLINT(misc-const-correctness): the asm writes it
    asm volatile("int $0x80" : "+a"(result) : : "memory");
    return result == 0 ? 1 : 0;
  };
  const int status = status_under(shared_filter(here, {}).program, get_pid_by_int80);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST(SeccompInTheKernel, KillsOnX32Numbers) {
  const int status = status_under(shared_filter(here, {}).program, [] {
    return static_cast<int>(::syscall(0x40000000 | SYS_getpid));
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}
#endif

}  // namespace
}  // namespace capgate::lower
