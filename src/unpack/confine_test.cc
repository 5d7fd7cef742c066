#include "unpack/confine.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace capgate::unpack {
namespace {

// What a hostile bundle would try with a reader that it has taken over. Each succeeds without
// confinement, as the same test shows; 0 is success.
struct Attempt {
  const char* name;
  int (*make)();
};

// Sanitizers ask the kernel something when a function that never returns is called.
void end(int code) { (void)::syscall(SYS_exit_group, code); }

int tried(long result) { return result < 0 ? errno : 0; }

constexpr Attempt attempts[] = {
    {"open a file", [] { return tried(::syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY)); }},
    {"open a directory",
     [] { return tried(::syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY)); }},
    {"ask about a file",
     [] {
       struct stat info{};
       return tried(::syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &info, 0));
     }},
    {"make a socket", [] { return tried(::syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)); }},
    {"make a pair of sockets",
     [] {
       int pair[2];
       return tried(::syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair));
     }},
    {"fork",
     [] {
       const long pid = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
       if (pid == 0) ::_exit(0);
       return tried(pid);
     }},
    {"signal its parent", [] { return tried(::syscall(SYS_kill, ::getppid(), 0)); }},
    {"make a file in memory", [] { return tried(::syscall(SYS_memfd_create, "x", 0)); }},
    {"duplicate a descriptor", [] { return tried(::syscall(SYS_dup, 0)); }},
    {"raise a limit",
     [] {
       rlimit limit{};
       return tried(::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit));
     }},
    {"read another process",
     [] {
       char byte = 0;
       iovec here{.iov_base = &byte, .iov_len = 1};
       return tried(::syscall(SYS_process_vm_readv, ::getpid(), &here, 1UL, &here, 1UL, 0UL));
     }},
    {"run a program",
     [] {
       // Without arguments it would be replaced, and the test with it: a name that is not there
       // shows as well whether the call itself is refused.
       const char* none[] = {nullptr};
       const long ran = ::syscall(SYS_execve, "/no-such-program", none, none);
       return ran < 0 && errno == ENOENT ? 0 : tried(ran);
     }},
};

enum class Confined : bool { no, yes };

// The errno of the attempt in a child; 255: it could not be confined, 254: it died.
int result_of(const Attempt& attempt, Confined confined) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (confined == Confined::yes && !confine().empty()) end(255);
    end(attempt.make());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

TEST(Confine, NothingOfTheMachineIsLeft) {
  for (const Attempt& attempt : attempts) {
    EXPECT_EQ(result_of(attempt, Confined::no), 0) << attempt.name;
    EXPECT_EQ(result_of(attempt, Confined::yes), ENOSYS) << attempt.name;
  }
}

TEST(Confine, WhatAReaderNeedsIsLeft) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!confine().empty()) end(255);
    void* memory =
        ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) end(1);
    end(::write(ends[1], "x", 1) == 1 ? 0 : 2);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace capgate::unpack
