#include "lower/seccomp_groups.h"

#include <array>

namespace capgate::lower {
namespace {

using core::syscall_list;

// Reading and writing what is already open. No vmsplice: it hands the caller's pages to a pipe, no
// runtime uses it, and it has been a way to root (CVE-2008-0600).
constexpr auto open_files = syscall_list(
    {"read",        "write",     "readv",     "writev",    "pread64",         "pwrite64",
     "preadv",      "pwritev",   "preadv2",   "pwritev2",  "lseek",           "close",
     "close_range", "dup",       "dup2",      "dup3",      "flock",           "sync_file_range",
     "fsync",       "fdatasync", "sync",      "syncfs",    "copy_file_range", "truncate",
     "ftruncate",   "fallocate", "fadvise64", "readahead", "sendfile",        "splice",
     "tee",         "cachestat"});

// Names and metadata. What can be reached is decided by the mounts and Landlock; the calls that
// take a mode are in seccomp.cc.
constexpr auto file_names = syscall_list(
    {"stat",      "fstat",      "lstat",     "newfstatat", "statx",      "statfs",
     "fstatfs",   "access",     "faccessat", "faccessat2", "readlink",   "readlinkat",
     "getdents",  "getdents64", "getcwd",    "chdir",      "fchdir",     "umask",
     "rename",    "renameat",   "renameat2", "rmdir",      "unlink",     "unlinkat",
     "link",      "linkat",     "symlink",   "symlinkat",  "getxattr",   "lgetxattr",
     "fgetxattr", "getxattrat", "listxattr", "llistxattr", "flistxattr", "listxattrat"});

// Changes of what a file is, beside its contents and its name. chown gives nothing away without a
// capability and clears set-id bits; extended attributes below security. and trusted. need
// capabilities as well.
constexpr auto file_attributes =
    syscall_list({"chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat",
                  "utimensat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr",
                  "lremovexattr", "fremovexattr", "removexattrat"});

// Watching files: every development server and file-system MCP server does.
constexpr auto watching =
    syscall_list({"inotify_init", "inotify_init1", "inotify_add_watch", "inotify_rm_watch"});

// The caller's own memory. mprotect with PROT_EXEC stays possible: node and java compile at run
// time. membarrier, mseal and protection keys are used by V8; the memory policy calls by the JVM.
constexpr auto memory = syscall_list({"brk",
                                      "mmap",
                                      "munmap",
                                      "mremap",
                                      "mprotect",
                                      "madvise",
                                      "mincore",
                                      "msync",
                                      "mlock",
                                      "mlock2",
                                      "munlock",
                                      "mlockall",
                                      "munlockall",
                                      "membarrier",
                                      "mseal",
                                      "pkey_alloc",
                                      "pkey_free",
                                      "pkey_mprotect",
                                      "map_shadow_stack",
                                      "mbind",
                                      "get_mempolicy",
                                      "set_mempolicy",
                                      "set_mempolicy_home_node"});

// System V and POSIX shared objects: each sandbox has its own IPC namespace, on every engine.
constexpr auto shared_objects =
    syscall_list({"shmget", "shmat", "shmdt", "shmctl", "semget", "semop", "semtimedop", "semctl",
                  "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend",
                  "mq_timedreceive", "mq_notify", "mq_getsetattr"});

// Reading clocks, sleeping, timers. Setting a clock is refused below.
constexpr auto time = syscall_list(
    {"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
     "times", "alarm", "getitimer", "setitimer", "timer_create", "timer_settime", "timer_gettime",
     "timer_getoverrun", "timer_delete", "timerfd_create", "timerfd_settime", "timerfd_gettime"});

// Threads: clone itself is in seccomp.cc. Affinity and scheduling are read by every runtime to
// count processors, and set by the JVM and by Go; raising a priority needs a capability or an
// rlimit. arch_prctl sets the calling thread's own registers (every C library does, for its thread
// area).
constexpr auto threads = syscall_list({"set_tid_address",
                                       "set_robust_list",
                                       "get_robust_list",
                                       "futex",
                                       "futex_waitv",
                                       "futex_wake",
                                       "futex_wait",
                                       "futex_requeue",
                                       "rseq",
                                       "arch_prctl",
                                       "gettid",
                                       "getcpu",
                                       "sched_yield",
                                       "sched_getaffinity",
                                       "sched_setaffinity",
                                       "sched_getparam",
                                       "sched_setparam",
                                       "sched_getscheduler",
                                       "sched_setscheduler",
                                       "sched_getattr",
                                       "sched_setattr",
                                       "sched_get_priority_max",
                                       "sched_get_priority_min",
                                       "sched_rr_get_interval",
                                       "getpriority",
                                       "setpriority",
                                       "ioprio_get",
                                       "ioprio_set"});

// Event loops. The older io_setup family is left out: runtimes do not use it, databases fall back.
constexpr auto polling =
    syscall_list({"poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1",
                  "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2",
                  "signalfd", "signalfd4", "pipe", "pipe2"});

// Signals reach what the PID namespace and Landlock's scope leave: the sandbox itself. A pidfd is a
// name for a process that can be waited for and signalled (Go's os/exec, Python's asyncio); taking
// descriptors through it (pidfd_getfd) is refused below.
constexpr auto signals = syscall_list(
    {"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
     "rt_sigsuspend", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "sigaltstack", "kill", "tkill",
     "tgkill", "pause", "restart_syscall", "pidfd_open", "pidfd_send_signal"});

// The end of a process and waiting for children. Making them is in seccomp.cc.
constexpr auto life_and_death = syscall_list(
    {"exit", "exit_group", "wait4", "waitid", "setsid", "getsid", "setpgid", "getpgid", "getpgrp"});

// Using sockets. Which can be made is in seccomp.cc; where they lead, the network namespace
// decides.
constexpr auto sockets = syscall_list({"bind", "listen", "accept", "accept4", "connect", "shutdown",
                                       "getsockname", "getpeername", "getsockopt", "sendto",
                                       "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg"});

// Who am I, where am I, how much may I use.
constexpr auto identity =
    syscall_list({"getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid",
                  "getresgid", "getgroups", "capget", "uname", "sysinfo", "getrusage", "getrlimit",
                  "setrlimit", "prlimit64", "getrandom"});

// Changing ids and capabilities: the server holds one id and no capability, so that these can only
// set what already is (programs that "drop privileges" must not fail on it). docker's own start
// needs them after its filter is in place, and a browser's sandbox inside its own user namespace.
constexpr auto own_privileges =
    syscall_list({"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid",
                  "setfsgid", "setgroups", "capset"});

// Restricting oneself further. Such rules only ever add to ours.
constexpr auto self_restriction =
    syscall_list({"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"});

constexpr auto allowed = std::to_array<CallGroup>({
    {"open files", allow, open_files},
    {"file names", allow, file_names},
    {"watching files", allow, watching},
    {"memory", allow, memory},
    {"shared objects", allow, shared_objects},
    {"time", allow, time},
    {"threads", allow, threads},
    {"polling", allow, polling},
    {"signals", allow, signals},
    {"life and death", allow, life_and_death},
    {"sockets", allow, sockets},
    {"identity", allow, identity},
    {"own privileges", allow, own_privileges},
    {"self restriction", allow, self_restriction},
});

// The filter cannot see what these do: the flags or operations are behind a pointer, or run later.
// ENOSYS, because every caller has a fallback for kernels without them (glibc: clone; libuv: its
// threads; musl and Rust: openat). EPERM would be taken for the answer to the operation itself.
constexpr auto unseen_by_filters =
    syscall_list({"clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register"});

// Newer ways to ask what /proc shows: ENOSYS, and libmount reads /proc/self/mountinfo instead.
constexpr auto mount_queries = syscall_list({"statmount", "listmount"});

// The mount table, in all the forms that a denylist forgot (CVE-2021-41133).
constexpr auto mounting =
    syscall_list({"mount", "umount2", "pivot_root", "open_tree", "open_tree_attr", "move_mount",
                  "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"});

// Other namespaces. unshare, chroot and clone's flags are in seccomp.cc.
constexpr auto joining = syscall_list({"setns"});

// Other processes' memory, descriptors and secrets. LeakSanitizer and debuggers probe these.
constexpr auto other_processes =
    syscall_list({"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
                  "process_mrelease", "kcmp", "pidfd_getfd", "move_pages", "migrate_pages"});

// The session keyring is inherited into every namespace: it would be the host user's own.
constexpr auto keyrings = syscall_list({"keyctl", "add_key", "request_key"});

// Programs and probes inside the kernel, and faults served by user space: exploit tools.
constexpr auto kernel_programs = syscall_list({"bpf", "perf_event_open", "userfaultfd"});

// The machine itself: its code, clocks, names, swap, accounting, log and ports.
constexpr auto machine = syscall_list(
    {"kexec_load",   "kexec_file_load", "init_module",   "finit_module", "delete_module",
     "reboot",       "swapon",          "swapoff",       "sethostname",  "setdomainname",
     "settimeofday", "clock_settime",   "clock_adjtime", "adjtimex",     "iopl",
     "ioperm",       "syslog",          "acct",          "vhangup",      "quotactl",
     "quotactl_fd",  "nfsservctl"});

// Files by handle or for a whole mount: past the paths that were granted (the "shocker" escape).
constexpr auto files_without_paths = syscall_list(
    {"name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark", "lookup_dcookie"});

constexpr auto refused = std::to_array<CallGroup>({
    {"unseen by filters", not_there, unseen_by_filters},
    {"mount queries", not_there, mount_queries},
    {"mounting", not_permitted, mounting},
    {"joining namespaces", not_permitted, joining},
    {"other processes", not_permitted, other_processes},
    {"keyrings", not_permitted, keyrings},
    {"kernel programs", not_permitted, kernel_programs},
    {"the machine", not_permitted, machine},
    {"files without paths", not_permitted, files_without_paths},
});

}  // namespace

std::span<const CallGroup> allowed_groups() { return allowed; }
std::span<const CallGroup> refused_groups() { return refused; }
std::span<const core::SyscallId> attribute_calls() { return file_attributes; }

}  // namespace capgate::lower
