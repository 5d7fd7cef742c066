#include "broker/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <span>
#include <string>

#include "support/temp_directory.h"

namespace capgate::broker {
namespace {

using test::TempDirectory;

enum class Confined : bool { no, yes };

constexpr int not_confined = 255;
constexpr int died = 254;

// Only raw system calls from here to the end of a child: the C library and the sanitizers make
// others on their own.
void end(int code) { (void)::syscall(SYS_exit_group, code); }

// The errno of a call, 0 for success.
int tried(long result) { return result < 0 ? errno : 0; }

// Runs an attempt in a child, confined as the broker is, or not as a control.
int result_of(const std::function<int()>& attempt, Confined confined, const Needs& needs = {}) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (confined == Confined::yes && !confine(needs).empty()) end(not_confined);
    end(attempt());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : died;
}

// ---- system calls -------------------------------------------------------------------------------

int make_socket(int family, int type, int protocol = 0) {
  return tried(::syscall(SYS_socket, family, type, protocol));
}

int make_child(long pid) {
  if (pid == 0) end(0);
  return tried(pid);
}

// A program that does not exist shows whether the call itself is refused, and replaces nothing.
int reaches_a_program(long ran) { return ran < 0 && errno == ENOENT ? 0 : tried(ran); }

int set_descriptor_option(int command, long value) {
  int ends[2];
  if (::syscall(SYS_pipe2, ends, O_CLOEXEC) != 0) return errno;
  return tried(::syscall(SYS_fcntl, ends[0], command, value));
}

const char* const no_words[] = {nullptr};

// What code that took the broker over would try first.
struct Attempt {
  const char* name;
  int (*make)();
};

constexpr Attempt processes[] = {
    {"clone", [] { return make_child(::syscall(SYS_clone, SIGCHLD, 0L, 0L, 0L, 0L)); }},
    {"clone3",
     [] {
       struct {
         std::uint64_t flags = 0, pidfd = 0, child_tid = 0, parent_tid = 0;
         std::uint64_t exit_signal = SIGCHLD;
         std::uint64_t stack = 0, stack_size = 0, tls = 0;
       } arguments;
       return make_child(::syscall(SYS_clone3, &arguments, sizeof(arguments)));
     }},
#if defined(__x86_64__)
    {"fork", [] { return make_child(::syscall(SYS_fork)); }},
#endif
    {"execve",
     [] {
       return reaches_a_program(::syscall(SYS_execve, "/no-such-program", no_words, no_words));
     }},
    {"execveat",
     [] {
       return reaches_a_program(
           ::syscall(SYS_execveat, AT_FDCWD, "/no-such-program", no_words, no_words, 0));
     }},
    {"kill", [] { return tried(::syscall(SYS_kill, ::getppid(), 0)); }},
    {"tgkill", [] { return tried(::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0)); }},
    {"tkill", [] { return tried(::syscall(SYS_tkill, ::getppid(), 0)); }},
    {"pidfd_open", [] { return tried(::syscall(SYS_pidfd_open, ::getppid(), 0)); }},
    {"ptrace", [] { return tried(::syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0)); }},
    {"process_vm_readv",
     [] {
       char byte = 0;
       iovec here{.iov_base = &byte, .iov_len = 1};
       return tried(::syscall(SYS_process_vm_readv, ::getpid(), &here, 1UL, &here, 1UL, 0UL));
     }},
    {"setsid", [] { return tried(::syscall(SYS_setsid)); }},
    {"setresuid", [] { return tried(::syscall(SYS_setresuid, -1, -1, -1)); }},
    {"prctl", [] { return tried(::syscall(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0)); }},
    {"prlimit64", [] { return tried(::syscall(SYS_prlimit64, 0, 0, nullptr, nullptr)); }},
    {"unshare", [] { return tried(::syscall(SYS_unshare, 0)); }},
};

constexpr Attempt sockets[] = {
    {"a Unix stream", [] { return make_socket(AF_UNIX, SOCK_STREAM); }},
    {"a Unix datagram socket", [] { return make_socket(AF_UNIX, SOCK_DGRAM); }},
    {"a netlink socket", [] { return make_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE); }},
    {"a pair of sockets",
     [] {
       int pair[2];
       return tried(::syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair));
     }},
    {"listening",
     [] {
       const long fd = ::syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
       return fd < 0 ? errno : tried(::syscall(SYS_listen, fd, 1));
     }},
};

constexpr Attempt descriptors[] = {
    {"a signal for whoever owns a descriptor",
     [] { return set_descriptor_option(F_SETOWN, ::getppid()); }},
    {"another signal for it", [] { return set_descriptor_option(F_SETSIG, SIGKILL); }},
    {"dup", [] { return tried(::syscall(SYS_dup, 0)); }},
    {"a file in memory", [] { return tried(::syscall(SYS_memfd_create, "x", 0)); }},
    {"io_uring",
     [] {
       io_uring_params parameters{};
       const long ring = ::syscall(SYS_io_uring_setup, 1, &parameters);
       // A host that forbids it answers EPERM: the call itself is there.
       return ring < 0 && errno == EPERM ? 0 : tried(ring);
     }},
    {"locked memory",
     [] {
       static char page[4096];
       return tried(::syscall(SYS_mlock, page, sizeof(page)));
     }},
};

void expect_refused(std::span<const Attempt> attempts) {
  for (const Attempt& attempt : attempts) {
    EXPECT_EQ(result_of(attempt.make, Confined::no), 0) << "control: " << attempt.name;
    EXPECT_EQ(result_of(attempt.make, Confined::yes), ENOSYS) << attempt.name;
  }
}

TEST(Confine, MakesNoProcessRunsNoProgramAndSignalsNobody) { expect_refused(processes); }
TEST(Confine, MakesOnlySocketsOfTheInternet) { expect_refused(sockets); }
TEST(Confine, MakesNoOtherDescriptors) { expect_refused(descriptors); }

TEST(Confine, LocksMemoryOnlyWhereSecretsNeedIt) {
  const auto lock = descriptors[std::size(descriptors) - 1].make;
  EXPECT_EQ(result_of(lock, Confined::yes, {.readable = {}, .locked_memory = true}), 0);
}

TEST(Confine, KeepsSocketsOfTheInternet) {
  for (const int family : {AF_INET, AF_INET6}) {
    EXPECT_EQ(result_of([=] { return make_socket(family, SOCK_STREAM); }, Confined::yes), 0);
  }
  EXPECT_EQ(result_of([] { return set_descriptor_option(F_SETFL, O_NONBLOCK); }, Confined::yes), 0);
}

// ---- files --------------------------------------------------------------------------------------

struct Files {
  TempDirectory place;
  std::string hidden = place.file("hidden/secret", "x");
  std::string shown = place.file("shown/roots.pem", "x");
  std::string alone = place.file("alone/root.pem", "x");
  Needs needs{.readable = {place.path("shown"), alone}, .locked_memory = false};

  static int open(const std::string& path, int flags) {
    return tried(::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags | O_CLOEXEC, 0600));
  }
  void expect(const std::string& path, int flags, int error) const {
    const auto attempt = [&] { return open(path, flags); };
    EXPECT_EQ(result_of(attempt, Confined::no), 0) << "control: " << path;
    EXPECT_EQ(result_of(attempt, Confined::yes, needs), error) << path << " flags " << flags;
  }
};

TEST(Confine, ReadsOnlyWhatItNeeds) {
  const Files files;
  files.expect("/etc/hosts", O_RDONLY, 0);
  files.expect("/etc", O_RDONLY | O_DIRECTORY, 0);
  files.expect(files.shown, O_RDONLY, 0);
  files.expect(files.place.path("shown"), O_RDONLY | O_DIRECTORY, 0);
  files.expect(files.alone, O_RDONLY, 0);
  files.expect(files.hidden, O_RDONLY, EACCES);
  files.expect(files.place.path("hidden"), O_RDONLY | O_DIRECTORY, EACCES);
  files.expect(files.place.path("alone"), O_RDONLY | O_DIRECTORY, EACCES);
  files.expect("/proc/self/environ", O_RDONLY, EACCES);
  files.expect("/", O_RDONLY | O_DIRECTORY, EACCES);
}

TEST(Confine, WritesAndMakesNoFile) {
  const Files files;
  files.expect(files.shown, O_WRONLY, EACCES);
  files.expect(files.shown, O_RDONLY | O_TRUNC, EACCES);
  files.expect(files.hidden, O_WRONLY, EACCES);
  // The control makes the first; a name of its own shows that the confined one makes none.
  const auto create = [&](const char* name) {
    return [path = files.place.path(name)] { return Files::open(path, O_WRONLY | O_CREAT); };
  };
  EXPECT_EQ(result_of(create("shown/control"), Confined::no), 0);
  EXPECT_EQ(result_of(create("shown/new"), Confined::yes, files.needs), EACCES);
  EXPECT_NE(::access(files.place.path("shown/new").c_str(), F_OK), 0);
}

TEST(Confine, ChangesNoDirectory) {
  const Files files;
  const auto change = [&](std::string_view name) {
    return [path = files.place.path(name)] {
      return tried(::syscall(SYS_mkdirat, AT_FDCWD, path.c_str(), 0700));
    };
  };
  EXPECT_EQ(result_of(change("shown/control"), Confined::no), 0);
  EXPECT_EQ(result_of(change("shown/new"), Confined::yes, files.needs), ENOSYS);
  const auto remove = [&] {
    return tried(::syscall(SYS_unlinkat, AT_FDCWD, files.shown.c_str(), 0));
  };
  EXPECT_EQ(result_of(remove, Confined::yes, files.needs), ENOSYS);
  EXPECT_EQ(result_of(remove, Confined::no), 0);
}

TEST(Confine, KeepsOpenFilesUsable) {
  const TempDirectory place;
  const std::string path = place.file("audit.jsonl", "");
  const int log = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(log, 0);
  EXPECT_EQ(result_of([=] { return ::write(log, "line\n", 5) == 5 ? 0 : errno; }, Confined::yes),
            0);
  ::close(log);
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "line");
}

// ---- what others see of it ----------------------------------------------------------------------

// A child that waits, as its parent finds it in /proc.
class Waiting {
 public:
  explicit Waiting(Confined confined) {
    int ready[2];
    int done[2];
    if (::pipe2(ready, O_CLOEXEC) != 0 || ::pipe2(done, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ready[0]);
      ::close(done[1]);
      become_ordinary();
      if (confined == Confined::yes && !confine({}).empty()) end(not_confined);
      char byte = 0;
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(done[0], &byte, 1);
      end(0);
    }
    ::close(ready[1]);
    ::close(done[0]);
    done_ = done[1];
    char byte = 1;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    ::close(done_);
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  }

  [[nodiscard]] std::string place(const char* name) const {
    return "/proc/" + std::to_string(pid_) + "/" + name;
  }
  [[nodiscard]] std::string status(std::string_view field) const {
    std::ifstream file(place("status"));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(field)) return line.substr(line.find_last_of(" \t") + 1);
    }
    return "no such field";
  }
  [[nodiscard]] uid_t owner() const {
    struct stat info{};
    return ::stat(place("mem").c_str(), &info) == 0 ? info.st_uid : ~0U;
  }

 private:
  // The files of root's processes are root's in any case. A change of ids makes a process not
  // dumpable, which is undone here.
  static void become_ordinary() {
    constexpr uid_t ordinary = 12345;
    if (::getuid() == 0 && ::syscall(SYS_setresuid, ordinary, ordinary, ordinary) != 0) end(1);
    if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) end(1);
  }

  pid_t pid_ = -1;
  int done_ = -1;
};

TEST(Confine, MemoryIsClosedToProcessesOfTheSameUser) {
  const Waiting control(Confined::no);
  EXPECT_NE(control.owner(), 0U);
  const Waiting confined(Confined::yes);
  EXPECT_EQ(confined.owner(), 0U);
}

TEST(Confine, GainsNoPrivileges) {
  const Waiting confined(Confined::yes);
  EXPECT_EQ(confined.status("NoNewPrivs:"), "1");
}

}  // namespace
}  // namespace capgate::broker
