// System calls that must not reach the kernel.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

// Each is called with arguments that the kernel refuses in words of its own (EBADF, EFAULT, EINVAL
// ...). EPERM and ENOSYS are the filter's, so the test compares the answers outside and inside.
struct call {
  const char* name;
  long number;
  long args[6];
};
static const struct call calls[] = {
    {"mount", SYS_mount, {0, 0, 0, 0, 0}},
    {"umount2", SYS_umount2, {0, -1}},
    {"pivot_root", SYS_pivot_root, {0, 0}},
    {"open_tree", 428, {-1, 0, -1}},
    {"move_mount", 429, {-1, 0, -1, 0, 0x7fffffff}},
    {"fsopen", 430, {0, -1}},
    {"fsconfig", 431, {-1, 0, 0, 0, 0}},
    {"fsmount", 432, {-1, 0, 0}},
    {"fspick", 433, {-1, 0, -1}},
    {"mount_setattr", 442, {-1, 0, 0x7fffffff, 0, 0}},
    {"open_tree_attr", 467, {-1, 0, 0x7fffffff, 0, 0}},
    {"statmount", 457, {0, 0, 0, -1}},
    {"listmount", 458, {0, 0, 0, -1}},
    {"setns", SYS_setns, {-1, 0}},
    {"chroot", SYS_chroot, {0}},
    // Named by no list of the filter: stands for the calls that do not exist yet.
    {"io_setup", SYS_io_setup, {0, 0}},
    {"io_uring_setup", 425, {0, 0}},
    {"io_uring_enter", 426, {-1, 0, 0, -1, 0, 0}},
    {"io_uring_register", 427, {-1, -1, 0, 0}},
    {"clone3", 435, {0, 0}},
    {"openat2", 437, {-1, 0, 0, 0}},
    {"bpf", SYS_bpf, {-1, 0, 8192}},
    {"perf_event_open", SYS_perf_event_open, {0, 0, -1, -1, -1}},
    {"userfaultfd", SYS_userfaultfd, {1}},  // UFFD_USER_MODE_ONLY: any user may
    {"keyctl", SYS_keyctl, {-1}},
    {"add_key", SYS_add_key, {0, 0, 0, 0, 0}},
    {"request_key", SYS_request_key, {0, 0, 0, 0}},
    {"ptrace", SYS_ptrace, {-1, -1, 0, 0}},
    {"process_vm_readv", SYS_process_vm_readv, {-1, 0, 0, 0, 0, -1}},
    {"process_vm_writev", SYS_process_vm_writev, {-1, 0, 0, 0, 0, -1}},
    {"process_madvise", 440, {-1, 0, 0, 0, -1}},
    {"process_mrelease", 448, {-1, 0}},
    {"kcmp", SYS_kcmp, {-1, -1, -1, 0, 0}},
    {"pidfd_getfd", 438, {-1, -1, 0}},
    {"move_pages", SYS_move_pages, {-1, 0, 0, 0, 0, -1}},
    {"migrate_pages", SYS_migrate_pages, {-2, 0, 0, 0}},
    {"name_to_handle_at", SYS_name_to_handle_at, {-1, 0, 0, 0, -1}},
    {"fanotify_mark", SYS_fanotify_mark, {-1, 0, 0, -1, 0}},
    {"clock_settime", SYS_clock_settime, {-1, 0}},
    {"clock_adjtime", SYS_clock_adjtime, {-1, 0}},
    {"adjtimex", SYS_adjtimex, {0}},
    {"sethostname", SYS_sethostname, {0, -1}},
    {"setdomainname", SYS_setdomainname, {0, -1}},
    {"reboot", SYS_reboot, {0, 0, 0, 0}},
#ifdef __x86_64__
    {"iopl", SYS_iopl, {99}},
    {"ioperm", SYS_ioperm, {-1, -1, 1}},
#endif
    // Refused to ordinary users by the kernel itself, which answers EPERM like the filter.
    {"kexec_load", SYS_kexec_load, {0, -1, 0, -1}},
    {"kexec_file_load", 320, {-1, -1, 0, 0, -1}},
    {"init_module", SYS_init_module, {0, 0, 0}},
    {"finit_module", SYS_finit_module, {-1, 0, -1}},
    {"delete_module", SYS_delete_module, {0, 0}},
    {"swapon", SYS_swapon, {0, -1}},
    {"swapoff", SYS_swapoff, {0}},
    {"acct", SYS_acct, {-1}},
    {"open_by_handle_at", SYS_open_by_handle_at, {-1, 0, 0}},
    // Allowed calls with one refused argument.
    {"personality", SYS_personality, {0x0040000}},   // ADDR_NO_RANDOMIZE, of this process
    {"seccomp_listener", SYS_seccomp, {1, 8, 0}},    // SECCOMP_FILTER_FLAG_NEW_LISTENER
    {"prctl_set_mm", SYS_prctl, {35, -1, 0, 0, 1}},  // PR_SET_MM
};

static int call(const char* name) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    const long* a = calls[i].args;
    if (strcmp(calls[i].name, name) != 0) continue;
    return failed(syscall(calls[i].number, a[0], a[1], a[2], a[3], a[4], a[5]));
  }
  return ENOENT;
}

static int name_calls(const char* arg) {
  (void)arg;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    strcat(detail, calls[i].name);
    strcat(detail, ",");
  }
  return 0;
}

// ---- namespaces
// -----------------------------------------------------------------------------------

static long namespace_flag(const char* name) {
  static const struct {
    const char* name;
    long flag;
  } flags[] = {{"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS},       {"pid", CLONE_NEWPID},
               {"net", CLONE_NEWNET},   {"ipc", CLONE_NEWIPC},      {"uts", CLONE_NEWUTS},
               {"time", 0x80},          {"cgroup", CLONE_NEWCGROUP}};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i) {
    if (strcmp(flags[i].name, name) == 0) return flags[i].flag;
  }
  return 0;
}

static int unshare_one(const char* name) { return failed(unshare((int)namespace_flag(name))); }

// As unshare: the child ends at once. In the upper half of the flags there is nothing, and a filter
// that compares 64 bits would be passed by a one there.
static int clone_with(long flags) {
  const long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  if (pid < 0) return errno;
  waitpid((pid_t)pid, NULL, 0);
  return 0;
}
static int clone_one(const char* name) { return clone_with(namespace_flag(name)); }
static int clone_high(const char* name) { return clone_with(namespace_flag(name) | (1L << 40)); }

// ---- other call tables
// ------------------------------------------------------------------------------

#ifdef __x86_64__
static int int80(const char* arg) {
  (void)arg;
  long result = 20;  // getpid in the table of i386
  __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  say("%ld", result);
  return result == getpid() ? 0 : ENOSYS;
}
static int x32(const char* arg) {
  (void)arg;
  return failed(syscall(0x40000000 | SYS_getpid));
}
#endif

// ---- processes and threads
// ----------------------------------------------------------------------------

static int fork_call(const char* arg) {
  (void)arg;
  const long pid = syscall(SYS_fork);
  if (pid == 0) _exit(0);
  if (pid < 0) return errno;
  waitpid((pid_t)pid, NULL, 0);
  return 0;
}
static int clone_process(const char* arg) {
  (void)arg;
  return clone_with(0);
}
static int vfork_call(const char* arg) {
  (void)arg;
  const pid_t pid = vfork();
  if (pid == 0) _exit(0);
  if (pid < 0) return errno;
  waitpid(pid, NULL, 0);
  return 0;
}

static void* mark(void* seen) {
  *(int*)seen = 1;
  return NULL;
}
static int thread(const char* arg) {
  (void)arg;
  pthread_t worker;
  int seen = 0;
  const int error = pthread_create(&worker, NULL, mark, &seen);
  if (error) return error;
  pthread_join(worker, NULL);
  return seen ? 0 : ESRCH;
}

// Becomes the program if it can. A program that prints the word tells that it ran.
static int exec_program(const char* path) {
  char* const argv[] = {(char*)path, "ran", NULL};
  char* const envp[] = {NULL};
  execve(path, argv, envp);
  return errno;
}
static int exec_descriptor(const char* path) {
  char* const argv[] = {(char*)path, "ran", NULL};
  char* const envp[] = {NULL};
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
  return errno;
}
// A copy of the program that no path names.
static int exec_memory(const char* path) {
  char* const argv[] = {(char*)path, "ran", NULL};
  char* const envp[] = {NULL};
  const int from = open(path, O_RDONLY | O_CLOEXEC);
  const int copy = (int)syscall(SYS_memfd_create, "copy", 1);
  if (from < 0 || copy < 0) return errno;
  char block[65536];
  for (ssize_t got; (got = read(from, block, sizeof block)) > 0;) {
    if (write(copy, block, (size_t)got) != got) return errno;
  }
  syscall(SYS_execveat, copy, "", argv, envp, AT_EMPTY_PATH);
  return errno;
}

const struct attempt call_attempts[] = {
    {"call", call},
    {"name_calls", name_calls},
    {"unshare", unshare_one},
    {"clone", clone_one},
    {"clone_high", clone_high},
#ifdef __x86_64__
    {"int80", int80},
    {"x32", x32},
#endif
    {"fork", fork_call},
    {"vfork", vfork_call},
    {"clone_process", clone_process},
    {"thread", thread},
    {"exec", exec_program},
    {"exec_descriptor", exec_descriptor},
    {"exec_memory", exec_memory},
    {NULL, NULL},
};
