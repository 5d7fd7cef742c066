// The least that a launch can cost: a program that confines another one as `capgate run` does, and
// nothing else. No manifest, no checks, no supervisor, no report: never a sandbox to be used.
//
//   floor [--bind PATH]... [--init PROGRAM] -- PROGRAM ARGUMENT...
//
// New user, mount, pid, net, ipc, uts and cgroup namespaces; a root of its own with each PATH
// read-only at its own place, five devices, /proc and /tmp; loopback up; Landlock; seccomp; exec.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace {

constexpr int failed = 125;
constexpr unsigned inner_id = 1000;
constexpr std::size_t most_binds = 4096;

struct Options {
  std::array<const char*, most_binds> binds{};
  std::size_t bind_count = 0;
  const char* init = nullptr;
  char** command = nullptr;
};

[[noreturn]] void stop(const char* what, const char* subject) {
  dprintf(STDERR_FILENO, "floor: %s %s: %s\n", what, subject, strerror(errno));
  _exit(failed);
}

long need(long result, const char* what, const char* subject = "") {
  if (result < 0) stop(what, subject);
  return result;
}

int need_fd(long result, const char* what, const char* subject = "") {
  return static_cast<int>(need(result, what, subject));
}

// ---- the steps -------------------------------------------------------------------------------

void write_once(const char* path, const char* text, std::size_t length) {
  const int file = need_fd(open(path, O_WRONLY | O_CLOEXEC), "open", path);
  need(write(file, text, length), "write", path);
  close(file);
}

void write_map(const char* path, unsigned outer_id) {
  std::array<char, 64> line{};
  const int length = snprintf(line.data(), line.size(), "%u %u 1", inner_id, outer_id);
  write_once(path, line.data(), static_cast<std::size_t>(length));
}

void raise_loopback() {
  const int any = need_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
  ifreq request{};
  memcpy(request.ifr_name, "lo", sizeof("lo"));
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  need(ioctl(any, SIOCSIFFLAGS, &request), "loopback");
  close(any);
}

// Attached over "/", where it hides nothing from this process: a lookup starts at the process's own
// root and does not step onto what lies on top of it.
int attach_new_root() {
  const int context = need_fd(fsopen("tmpfs", FSOPEN_CLOEXEC), "fsopen");
  need(fsconfig(context, FSCONFIG_SET_STRING, "mode", "755", 0), "fsconfig");
  need(fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0), "fsconfig");
  const int root = need_fd(fsmount(context, FSMOUNT_CLOEXEC, 0), "fsmount");
  close(context);
  need(move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH), "attach", "/");
  return root;
}

void make_parents(int root, const char* inside) {
  std::array<char, 4096> prefix{};
  for (const char* slash = strchr(inside, '/'); slash != nullptr; slash = strchr(slash + 1, '/')) {
    memcpy(prefix.data(), inside, static_cast<std::size_t>(slash - inside));
    prefix[static_cast<std::size_t>(slash - inside)] = '\0';
    if (mkdirat(root, prefix.data(), 0755) < 0 && errno != EEXIST) stop("mkdir", inside);
  }
}

int make_place(int root, const char* inside, mode_t mode) {
  return S_ISDIR(mode) ? mkdirat(root, inside, 0755) : mknodat(root, inside, S_IFREG | 0644, 0);
}

void need_place(int root, const char* inside, mode_t mode) {
  if (make_place(root, inside, mode) == 0 || errno == EEXIST) return;
  make_parents(root, inside);
  need(make_place(root, inside, mode), "make", inside);
}

struct Bound {
  int fd;
  mode_t mode;
};

Bound bind_path(int root, const char* path, std::uint64_t attributes) {
  const int tree =
      need_fd(open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC), "open_tree", path);
  mount_attr wanted{};
  wanted.attr_set = attributes;
  need(mount_setattr(tree, "", AT_EMPTY_PATH, &wanted, sizeof(wanted)), "mount_setattr", path);
  struct stat found{};
  need(fstat(tree, &found), "fstat", path);
  const char* const inside = path + 1;
  need_place(root, inside, found.st_mode);
  need(move_mount(tree, "", root, inside, MOVE_MOUNT_F_EMPTY_PATH), "attach", path);
  return {.fd = tree, .mode = found.st_mode};
}

void bind_devices(int root) {
  need(mkdirat(root, "dev", 0755), "mkdir", "/dev");
  for (const char* device :
       {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
    close(bind_path(root, device, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC).fd);
  }
}

void mount_below(const char* type, const char* inside, unsigned long flags) {
  need(mkdir(inside, 0755), "mkdir", inside);
  need(mount(type, inside, type, flags | MS_NOSUID | MS_NODEV, nullptr), "mount", inside);
}

// Before the binds: what is bound below /tmp lies on top of it.
void mount_filesystems(int root) {
  need(fchdir(root), "fchdir");
  mount_below("proc", "proc", MS_NOEXEC);
  mount_below("tmpfs", "tmp", 0);
}

// The working directory is the new root.
void enter_new_root() {
  need(syscall(SYS_pivot_root, ".", "."), "pivot_root");
  need(umount2(".", MNT_DETACH), "umount", "the old root");
  mount_attr read_only{};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  need(mount_setattr(AT_FDCWD, "/", 0, &read_only, sizeof(read_only)), "mount_setattr", "/");
}

// ---- Landlock and seccomp --------------------------------------------------------------------

constexpr std::uint64_t read_rights =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t every_right = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // ABI 1

class Ruleset {
 public:
  Ruleset() {
    landlock_ruleset_attr handled{};
    handled.handled_access_fs = every_right;
    fd_ = need_fd(syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0), "landlock");
  }

  void allow(int fd, std::uint64_t rights, const char* subject) const {
    landlock_path_beneath_attr rule{};
    rule.parent_fd = fd;
    rule.allowed_access = rights;
    need(syscall(SYS_landlock_add_rule, fd_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0), "landlock",
         subject);
  }

  void allow_bound(Bound bound, const char* path) const {
    allow(bound.fd, S_ISDIR(bound.mode) ? read_rights : read_rights & ~LANDLOCK_ACCESS_FS_READ_DIR,
          path);
  }

  void allow_path(const char* path, std::uint64_t rights) const {
    const int fd = need_fd(open(path, O_PATH | O_CLOEXEC), "open", path);
    allow(fd, rights, path);
    close(fd);
  }

  void enforce() const {
    need(syscall(SYS_landlock_restrict_self, fd_, 0), "landlock");
    close(fd_);
  }

 private:
  int fd_ = -1;
};

#if defined(__x86_64__)
constexpr unsigned own_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned own_architecture = AUDIT_ARCH_AARCH64;
#endif

// One comparison for each call, as a filter of the simplest kind has.
constexpr auto refused_calls = std::to_array<unsigned>({SYS_ptrace,
                                                        SYS_process_vm_readv,
                                                        SYS_process_vm_writev,
                                                        SYS_kexec_load,
                                                        SYS_init_module,
                                                        SYS_finit_module,
                                                        SYS_delete_module,
                                                        SYS_bpf,
                                                        SYS_perf_event_open,
                                                        SYS_userfaultfd,
                                                        SYS_io_uring_setup,
                                                        SYS_io_uring_enter,
                                                        SYS_keyctl,
                                                        SYS_add_key,
                                                        SYS_request_key,
                                                        SYS_mount,
                                                        SYS_umount2,
                                                        SYS_pivot_root,
                                                        SYS_chroot,
                                                        SYS_setns,
                                                        SYS_unshare,
                                                        SYS_open_tree,
                                                        SYS_move_mount,
                                                        SYS_fsopen,
                                                        SYS_fsmount,
                                                        SYS_mount_setattr,
                                                        SYS_reboot,
                                                        SYS_swapon,
                                                        SYS_quotactl,
                                                        SYS_acct,
                                                        SYS_syslog,
                                                        SYS_clone3});

void install_filter() {
  constexpr std::size_t head = 4;
  std::array<sock_filter, head + refused_calls.size() + 2> code{};
  constexpr std::size_t allow = code.size() - 2;
  constexpr std::size_t refuse = code.size() - 1;
  code[0] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  code[1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own_architecture, 1, 0);
  code[2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  code[3] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (std::size_t i = 0; i < refused_calls.size(); ++i) {
    const auto jump = static_cast<std::uint8_t>(refuse - (head + i) - 1);
    code[head + i] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused_calls[i], jump, 0);
  }
  code[allow] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[refuse] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  const sock_fprog program{.len = code.size(), .filter = code.data()};
  need(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp");
}

// ---- both sides of the clone -----------------------------------------------------------------

[[noreturn]] void run_inside(const Options& options, unsigned user, unsigned group) {
  need(prctl(PR_SET_PDEATHSIG, SIGKILL), "death signal");
  write_once("/proc/self/setgroups", "deny", 4);
  write_map("/proc/self/uid_map", user);
  write_map("/proc/self/gid_map", group);
  raise_loopback();

  const int root = attach_new_root();
  mount_filesystems(root);
  const Ruleset rules;
  for (const char* path : std::span(options.binds).first(options.bind_count)) {
    const Bound bound =
        bind_path(root, path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    rules.allow_bound(bound, path);
    close(bound.fd);
  }
  bind_devices(root);
  enter_new_root();
  rules.allow_path("/proc", read_rights);
  rules.allow_path("/dev", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
  rules.allow_path("/tmp", every_right);

  need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  rules.enforce();
  need(close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC), "close_range");
  install_filter();
  // The word before the command is its "--", which becomes the init's own name.
  char** const words = options.init == nullptr ? options.command : options.command - 1;
  const char* const program = options.init == nullptr ? options.command[0] : options.init;
  execve(program, words, environ);
  stop("exec", program);
}

int run_outside(const Options& options) {
  const unsigned user = getuid();
  const unsigned group = getgid();
  clone_args wanted{};
  wanted.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                 CLONE_NEWUTS | CLONE_NEWCGROUP;
  wanted.exit_signal = SIGCHLD;
  const long child = need(syscall(SYS_clone3, &wanted, sizeof(wanted)), "clone3");
  if (child == 0) run_inside(options, user, group);

  int status = 0;
  need(waitpid(static_cast<pid_t>(child), &status, 0), "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool parse(std::span<char*> words, Options& options) {
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (strcmp(words[i], "--") == 0) {
      options.command = &words[i + 1];
      return true;
    }
    if (strcmp(words[i], "--init") == 0) {
      options.init = words[i + 1];
    } else if (strcmp(words[i], "--bind") == 0 && options.bind_count < most_binds) {
      options.binds[options.bind_count++] = words[i + 1];
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  static Options options;  // too large for the stack
  if (!parse(std::span(argv, static_cast<std::size_t>(argc)).subspan(1), options)) {
    dprintf(STDERR_FILENO, "usage: floor [--bind PATH]... [--init PROGRAM] -- PROGRAM ARG...\n");
    return failed;
  }
  return run_outside(options);
}
