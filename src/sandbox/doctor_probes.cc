// What the children do. After fork only async-signal-safe calls: no allocation, no logging.
#include "sandbox/doctor_probes.h"

#include <elf.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/format.h"
#include "sandbox/netlink.h"
#include "sys/fd.h"

namespace capgate::sandbox {
namespace {

using egress::wire::Family;

constexpr int deadline_in_milliseconds = 5000;

// What a call that went through although it must not counts as.
constexpr int not_held = EPROTO;

int error_of(long result) { return result < 0 ? errno : 0; }

// ---- a whole sandbox ----------------------------------------------------------------------------

// Made before the fork.
struct Messages {
  std::string route_ipv4 = local_route(Family::ipv4);
  std::string route_ipv6 = local_route(Family::ipv6);
  std::string redirect = sandbox::redirect({.family = Family::ipv4, .ports = {}, .to = 61000});
};

struct Trial {
  Ids leave_root_for;
  Messages messages;
};

struct Inside {
  unsigned outer_uid = 0;
  unsigned outer_gid = 0;
  int root = -1;
};

int write_text(const char* path, const char* text, std::size_t size) {
  const sys::Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return errno;
  return error_of(::write(file.get(), text, size));
}

// "1000 OUTER 1", without a library that may allocate.
int write_map(const char* path, unsigned outer) {
  char digits[10];
  std::size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + outer % 10);
    outer /= 10;
  } while (outer != 0);
  char line[32] = "1000 ";
  std::size_t size = 5;
  while (count > 0) line[size++] = digits[--count];
  line[size++] = ' ';
  line[size++] = '1';
  return write_text(path, line, size);
}

int id_map(Inside& inside) {
  // An older kernel has no such file, and then no such condition.
  const int denied = write_text("/proc/self/setgroups", "deny", 4);
  if (denied != 0 && denied != ENOENT) return denied;
  const int err = write_map("/proc/self/uid_map", inside.outer_uid);
  return err != 0 ? err : write_map("/proc/self/gid_map", inside.outer_gid);
}

int loopback(Inside& /*inside*/) {
  const sys::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return errno;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return error_of(::ioctl(socket.get(), SIOCSIFFLAGS, &request));
}

int private_mounts(Inside& /*inside*/) {
  return error_of(::mount(nullptr, "/", nullptr, MS_PRIVATE | MS_REC, nullptr));
}

// A detached mount, or -1 and errno.
int new_mount(const char* type, const char* size) {
  const sys::Fd context(::fsopen(type, FSOPEN_CLOEXEC));
  if (context.get() < 0) return -1;
  if (size != nullptr && ::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", size, 0) != 0)
    return -1;
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return -1;
  return ::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

int tmpfs(Inside& inside) {
  inside.root = new_mount("tmpfs", "1m");
  if (inside.root < 0) return errno;
  // Any directory will do: what it covers is covered in this namespace only.
  for (const char* place : {"/tmp", "/usr", "/etc"}) {
    if (::move_mount(inside.root, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) == 0) return 0;
    if (errno != ENOENT && errno != ENOTDIR) return errno;
  }
  return ENOENT;
}

int proc(Inside& inside) {
  const sys::Fd mount(new_mount("proc", nullptr));
  if (mount.get() < 0) return errno;
  if (::mkdirat(inside.root, "proc", 0755) != 0) return errno;
  return error_of(::move_mount(mount.get(), "", inside.root, "proc", MOVE_MOUNT_F_EMPTY_PATH));
}

int pivot(Inside& inside) {
  if (::fchdir(inside.root) != 0) return errno;
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return errno;
  if (::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0) return errno;
  if (::access("/etc", F_OK) == 0) return not_held;
  return error_of(::access("/proc/1/status", F_OK));
}

void try_network(const Reporter& reporter, const Messages& messages) {
  const int err = carry_out(NETLINK_ROUTE, messages.route_ipv4);
  const bool has_ipv6 = carry_out(NETLINK_ROUTE, messages.route_ipv6) == 0;
  reporter.tell({.check = Check::any_address, .err = err, .value = has_ipv6 ? 1U : 0U});
  reporter.tell({.check = Check::redirect, .err = carry_out(NETLINK_NETFILTER, messages.redirect)});
}

// The order of the launcher and of init. Each step needs the ones before it.
void walk_through_a_sandbox(const Reporter& reporter, Inside inside, const Messages& messages) {
  struct Step {
    Check check;
    int (*take)(Inside&);
  };
  static constexpr Step steps[] = {
      {Check::id_map, id_map}, {Check::loopback, loopback}, {Check::private_mounts, private_mounts},
      {Check::tmpfs, tmpfs},   {Check::proc, proc},         {Check::pivot, pivot}};
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  reporter.tell({.check = Check::namespaces});
  for (const Step& step : steps) {
    const int err = step.take(inside);
    reporter.tell({.check = step.check, .err = err});
    if (err != 0) return;
    if (step.check == Check::loopback) try_network(reporter, messages);
  }
}

int leave_root(const Ids& ids) {
  if (ids.uid == 0 || ids.gid == 0) return 0;
  if (::setgroups(0, nullptr) != 0 || ::setresgid(ids.gid, ids.gid, ids.gid) != 0 ||
      ::setresuid(ids.uid, ids.uid, ids.uid) != 0) {
    return errno;
  }
  // A change of ids makes /proc/self root's, and the id maps with it.
  return error_of(::prctl(PR_SET_DUMPABLE, 1));
}

void sandbox_work(const Reporter& reporter, const void* argument) {
  const auto& trial = *static_cast<const Trial*>(argument);
  const int left = leave_root(trial.leave_root_for);
  if (left != 0) return reporter.tell({.check = Check::namespaces, .err = left});
  const Inside inside{.outer_uid = ::geteuid(), .outer_gid = ::getegid()};

  clone_args arguments{};
  arguments.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                    CLONE_NEWUTS | CLONE_NEWCGROUP;
  arguments.exit_signal = SIGCHLD;
  const long child = ::syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (child < 0) return reporter.tell({.check = Check::namespaces, .err = errno});
  if (child == 0) {
    walk_through_a_sandbox(reporter, inside, trial.messages);
    ::_exit(0);
  }
  ::waitpid(static_cast<pid_t>(child), nullptr, 0);
}

// ---- Landlock -----------------------------------------------------------------------------------

// Debian's header ends at ABI 2 and older ones have none, so these are our own.
constexpr long landlock_create_ruleset = 444;
constexpr long landlock_restrict_self = 446;
constexpr unsigned landlock_version = 1;
constexpr std::uint64_t landlock_first_rights = (1U << 13U) - 1;

int hold_by_landlock() {
  const sys::Fd ruleset(static_cast<int>(::syscall(landlock_create_ruleset, &landlock_first_rights,
                                                   sizeof(landlock_first_rights), 0U)));
  if (ruleset.get() < 0) return errno;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (::syscall(landlock_restrict_self, ruleset.get(), 0U) != 0) return errno;
  const sys::Fd escaped(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return escaped.get() < 0 && errno == EACCES ? 0 : not_held;
}

void landlock_work(const Reporter& reporter, const void* /*argument*/) {
  const long abi = ::syscall(landlock_create_ruleset, nullptr, std::size_t{0}, landlock_version);
  if (abi < 0) return reporter.tell({.check = Check::landlock, .err = errno});
  const int err = hold_by_landlock();
  reporter.tell({.check = Check::landlock, .err = err, .value = static_cast<std::uint32_t>(abi)});
}

// ---- seccomp ------------------------------------------------------------------------------------

// Answers getppid with `action` and lets everything else pass. Returns what the kernel returns.
long install_filter(std::uint32_t action, unsigned flags) {
  sock_filter code[] = {
      {.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = offsetof(seccomp_data, nr)},
      {.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 0, .jf = 1, .k = SYS_getppid},
      {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = action},
      {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{.len = sizeof(code) / sizeof(code[0]), .filter = code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

void seccomp_work(const Reporter& reporter, const void* /*argument*/) {
  int err = error_of(install_filter(SECCOMP_RET_ERRNO | EXFULL, 0));
  if (err == 0 && (::syscall(SYS_getppid) != -1 || errno != EXFULL)) err = not_held;
  reporter.tell({.check = Check::seccomp, .err = err});
}

constexpr std::int64_t answer_of_the_listener = 4242;

int answer_one_call(const sys::Fd& listener) {
  seccomp_notif call{};
  if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return errno;
  seccomp_notif_resp response{.id = call.id, .val = answer_of_the_listener, .error = 0, .flags = 0};
  return error_of(::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &response));
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int listen_to_a_child() {
  const sys::Fd listener(
      static_cast<int>(install_filter(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER)));
  if (listener.get() < 0) return errno;
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(::syscall(SYS_getppid) == answer_of_the_listener ? 0 : 1);
  }
  const int err = answer_one_call(listener);
  if (err != 0) ::kill(child, SIGKILL);
  const int code = exit_code_of(child);
  if (err != 0) return err;
  return code == 0 ? 0 : not_held;
}

void listener_work(const Reporter& reporter, const void* /*argument*/) {
  reporter.tell({.check = Check::listener, .err = listen_to_a_child()});
}

// ---- a program in memory ------------------------------------------------------------------------

// No errno of exec has this value.
constexpr int exit_of_tiny_program = 200;

struct TinyProgram {
  Elf64_Ehdr header{};
  Elf64_Phdr segment{};
#if defined(__x86_64__)
  // mov edi, 200; mov eax, exit_group; syscall
  unsigned char code[12] = {0xbf, 0xc8, 0, 0, 0, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05};
  static constexpr Elf64_Half machine = EM_X86_64;
#elif defined(__aarch64__)
  // mov x0, 200; mov x8, exit_group; svc 0
  unsigned char code[12] = {0x00, 0x19, 0x80, 0xd2, 0xc8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
  static constexpr Elf64_Half machine = EM_AARCH64;
#else
#error "exit_group in machine code for this architecture"
#endif
};

TinyProgram tiny_program() {
  constexpr Elf64_Addr base = 0x400000;
  TinyProgram program;
  program.header = {
      .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
      .e_type = ET_EXEC,
      .e_machine = TinyProgram::machine,
      .e_version = EV_CURRENT,
      .e_entry = base + offsetof(TinyProgram, code),
      .e_phoff = offsetof(TinyProgram, segment),
      .e_ehsize = sizeof(Elf64_Ehdr),
      .e_phentsize = sizeof(Elf64_Phdr),
      .e_phnum = 1};
  program.segment = {.p_type = PT_LOAD,
                     .p_flags = PF_R | PF_X,
                     .p_vaddr = base,
                     .p_paddr = base,
                     .p_filesz = sizeof(TinyProgram),
                     .p_memsz = sizeof(TinyProgram),
                     .p_align = 0x10000};
  return program;
}

// Kernels before 6.3 do not know the flag, and need none.
int executable_memory() {
  constexpr unsigned mfd_exec = 0x10;
  const int fd = ::memfd_create("capgate-doctor", MFD_CLOEXEC | mfd_exec);
  return fd < 0 && errno == EINVAL ? ::memfd_create("capgate-doctor", MFD_CLOEXEC) : fd;
}

int run_from_memory() {
  const sys::Fd memory(executable_memory());
  if (memory.get() < 0) return errno;
  const TinyProgram program = tiny_program();
  if (::write(memory.get(), &program, sizeof(program)) != ssize_t{sizeof(program)}) return errno;
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char name[] = "tiny";
    char* const arguments[] = {name, nullptr};
    char* const environment[] = {nullptr};
    ::syscall(SYS_execveat, memory.get(), "", arguments, environment, AT_EMPTY_PATH);
    ::_exit(errno);
  }
  const int code = exit_code_of(child);
  if (code == exit_of_tiny_program) return 0;
  return code > 0 ? code : not_held;
}

void memfd_work(const Reporter& reporter, const void* /*argument*/) {
  reporter.tell({.check = Check::memfd_exec, .err = run_from_memory()});
}

// ---- control groups -----------------------------------------------------------------------------

struct Group {
  std::string directory;
  std::string procs;  // of the parent: who cannot write it cannot move a process into a child
};

int make_and_remove(const Group& group) {
  if (::mkdir(group.directory.c_str(), 0755) != 0) return errno;
  const int err = error_of(::faccessat(AT_FDCWD, group.procs.c_str(), W_OK, AT_EACCESS));
  return ::rmdir(group.directory.c_str()) != 0 ? errno : err;
}

// In a session of its own and deaf to signals: a doctor that is interrupted leaves no group behind.
void cgroup_work(const Reporter& reporter, const void* argument) {
  ::setsid();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  std::uint32_t place = 0;
  for (const Group& group : *static_cast<const std::vector<Group>*>(argument)) {
    reporter.tell({.check = Check::cgroup, .err = make_and_remove(group), .value = place++});
  }
}

// ---- the log ------------------------------------------------------------------------------------

struct LogPlace {
  std::string directory;
  std::string child;  // a name in it that nothing has
};

// A file system without nameless files is tried by a directory, which is removed at once.
int make_and_forget(const LogPlace& place) {
  const sys::Fd file(::open(place.directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file.get() >= 0) return 0;
  if (errno != EOPNOTSUPP && errno != EISDIR) return errno;
  if (::mkdir(place.child.c_str(), 0700) != 0) return errno;
  return error_of(::rmdir(place.child.c_str()));
}

void audit_work(const Reporter& reporter, const void* argument) {
  reporter.tell(
      {.check = Check::audit, .err = make_and_forget(*static_cast<const LogPlace*>(argument))});
}

// ---- locked memory ------------------------------------------------------------------------------

// What capgate-broker-tls needs at its start with one secret: a full handover, and its parts.
constexpr std::size_t locked_bytes = std::size_t{128} << 10U;

void locked_memory_work(const Reporter& reporter, const void* argument) {
  const int left = leave_root(*static_cast<const Ids*>(argument));
  if (left != 0) return reporter.tell({.check = Check::locked_memory, .err = left});
  void* memory =
      ::mmap(nullptr, locked_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return reporter.tell({.check = Check::locked_memory, .err = errno});
  // The call itself: sanitizers make the library's do nothing.
  reporter.tell(
      {.check = Check::locked_memory, .err = error_of(::syscall(SYS_mlock, memory, locked_bytes))});
}

std::vector<Answer> run(Work work, const void* argument = nullptr) {
  return in_a_child(work, argument, deadline_in_milliseconds);
}

}  // namespace

std::vector<Answer> try_sandbox(Ids leave_root_for) {
  const Trial trial{.leave_root_for = leave_root_for, .messages = {}};
  return run(sandbox_work, &trial);
}
std::vector<Answer> try_landlock() { return run(landlock_work); }
std::vector<Answer> try_seccomp() { return run(seccomp_work); }
std::vector<Answer> try_listener() { return run(listener_work); }
std::vector<Answer> try_memfd_exec() { return run(memfd_work); }

std::vector<Answer> try_locked_memory(Ids leave_root_for) {
  return run(locked_memory_work, &leave_root_for);
}

std::vector<Answer> try_audit(const std::string& directory) {
  std::string existing = directory;
  while (existing.size() > 1 && ::access(existing.c_str(), F_OK) != 0 && errno == ENOENT) {
    existing.resize(existing.rfind('/'));
    if (existing.empty()) existing = "/";
  }
  const LogPlace place{.directory = existing,
                       .child = format("{}/capgate-doctor-{}", existing, ::getpid())};
  std::vector<Answer> answers = run(audit_work, &place);
  if (answers.empty()) ::rmdir(place.child.c_str());
  return answers;
}

std::vector<Answer> try_cgroups(const std::vector<CgroupPlace>& places) {
  std::vector<Group> groups;
  groups.reserve(places.size());
  for (const CgroupPlace& place : places) {
    groups.push_back({.directory = format("{}/capgate-doctor-{}", place.directory, ::getpid()),
                      .procs = place.directory + "/cgroup.procs"});
  }
  std::vector<Answer> answers = run(cgroup_work, &groups);
  // Only a child that hung between the two calls leaves something to do here.
  for (const Group& group : groups) ::rmdir(group.directory.c_str());
  return answers;
}

}  // namespace capgate::sandbox
