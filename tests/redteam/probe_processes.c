// Other processes, identity, and amounts that a limit must stop.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

extern char** environ;

static int with_target(const char* arg, int (*attack)(int pid)) {
  const int pid = target(arg);
  if (pid < 0) return -pid;
  const int error = attack(pid);
  release(arg, pid);
  return error;
}

static int seize(int pid) { return failed(ptrace(PTRACE_SEIZE, pid, NULL, NULL)); }
static int take_descriptor(int pid) {
  const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0) return errno;
  return failed(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}
static int peek(int pid) {
  static int word = 7;  // at the same address in a forked child
  int copy = 0;
  struct iovec here = {&copy, sizeof copy}, there = {&word, sizeof word};
  return failed(process_vm_readv(pid, &here, 1, &there, 1, 0));
}
static int poke(int pid) {
  static int word = 7;
  struct iovec here = {&word, sizeof word};
  return failed(process_vm_writev(pid, &here, 1, &here, 1, 0));
}
static int compare(int pid) { return failed(syscall(SYS_kcmp, getpid(), pid, 0, 0, 0)); }
static int signal_zero(int pid) { return failed(kill(pid, 0)); }
static int signal_by_pidfd(int pid) {
  const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0) return errno;
  return failed(syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0));
}
static int set_limit(int pid) {
  struct rlimit now;
  return failed(prlimit(pid, RLIMIT_NOFILE, NULL, &now));
}

static int seize_target(const char* arg) { return with_target(arg, seize); }
static int getfd_target(const char* arg) { return with_target(arg, take_descriptor); }
static int peek_target(const char* arg) { return with_target(arg, peek); }
static int poke_target(const char* arg) { return with_target(arg, poke); }
static int kcmp_target(const char* arg) { return with_target(arg, compare); }
static int kill0_target(const char* arg) { return with_target(arg, signal_zero); }
static int pidfd_kill0_target(const char* arg) { return with_target(arg, signal_by_pidfd); }
static int prlimit_target(const char* arg) { return with_target(arg, set_limit); }

// ---- identity
// -------------------------------------------------------------------------------------

static int ids(const char* arg) {
  (void)arg;
  gid_t groups[64];
  uid_t r, e, s;
  gid_t gr, ge, gs;
  if (getresuid(&r, &e, &s) != 0 || getresgid(&gr, &ge, &gs) != 0) return errno;
  const int count = getgroups(64, groups);
  say("%u %u %u %u %u %u groups %d", r, e, s, gr, ge, gs, count);
  return 0;
}
static int names_of_environment(const char* arg) {
  (void)arg;
  for (char** at = environ; *at; ++at) {
    const size_t used = strlen(detail);
    snprintf(detail + used, sizeof detail - used, "%.*s,", (int)strcspn(*at, "="), *at);
  }
  return 0;
}
static int become_root(const char* arg) {
  (void)arg;
  return failed(syscall(SYS_setresuid, 0, 0, 0));
}
static int hostname(const char* arg) {
  (void)arg;
  char name[128];
  const int error = failed(gethostname(name, sizeof name));
  say("%s", name);
  return error;
}

const struct attempt process_attempts[] = {
    {"seize", seize_target},
    {"getfd", getfd_target},
    {"peek", peek_target},
    {"poke", poke_target},
    {"kcmp", kcmp_target},
    {"kill0", kill0_target},
    {"pidfd_kill0", pidfd_kill0_target},
    {"prlimit", prlimit_target},
    {"ids", ids},
    {"env", names_of_environment},
    {"become_root", become_root},
    {"hostname", hostname},
    {NULL, NULL},
};

// ---- amounts: OPEN means that all of it was had
// ----------------------------------------------------

// So many sleeping children at once.
static int children(const char* arg) {
  enum { most = 1024 };
  static pid_t pids[most];
  const int wanted = atoi(arg) < most ? atoi(arg) : most;
  int made = 0, error = 0;
  for (; made < wanted; ++made) {
    pids[made] = fork();
    if (pids[made] < 0) {
      error = errno;
      break;
    }
    if (pids[made] == 0) {
      alarm(25);
      pause();
      _exit(0);
    }
  }
  say("%d", made);
  for (int i = 0; i < made; ++i) kill(pids[i], SIGKILL);
  for (int i = 0; i < made; ++i) waitpid(pids[i], NULL, 0);
  return error;
}

static const size_t mebibyte = 1024 * 1024;

// Holds it for a second: a watchdog that looks from time to time must have had its chance.
static int touch_memory(int flags, const char* arg) {
  const int wanted = atoi(arg) < 4096 ? atoi(arg) : 4096;
  for (int i = 0; i < wanted; ++i) {
    char* at = mmap(NULL, mebibyte, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      say("%d", i);
      return errno;
    }
    for (size_t page = 0; page < mebibyte; page += 4096) at[page] = 1;
  }
  sleep(1);
  say("%d", wanted);
  return 0;
}
static int private_memory(const char* arg) { return touch_memory(MAP_PRIVATE, arg); }
static int shared_memory(const char* arg) { return touch_memory(MAP_SHARED, arg); }

static int descriptors(const char* arg) {
  const int wanted = atoi(arg) < 65536 ? atoi(arg) : 65536;
  int made = 0, error = 0;
  for (; made < wanted; ++made) {
    if (dup(STDIN_FILENO) < 0) {
      error = errno;
      break;
    }
  }
  say("%d", made);
  return error;
}
static int raise_descriptor_limit(const char* arg) {
  const rlim_t wanted = (rlim_t)atol(arg);
  const struct rlimit limit = {wanted, wanted};
  return failed(setrlimit(RLIMIT_NOFILE, &limit));
}

static int write_mebibytes(int fd, int wanted) {
  static char block[65536];
  int done = 0;
  memset(block, 'x', sizeof block);
  for (; done < wanted; ++done) {
    for (size_t sent = 0; sent < mebibyte;) {
      const ssize_t got = write(fd, block, sizeof block);
      if (got < 0) {
        say("%d", done);
        return errno;
      }
      sent += (size_t)got;
    }
  }
  say("%d", done);
  return 0;
}
// DIRECTORY,MEBIBYTES, into a file without a name.
static int fill(const char* arg) {
  char directory[1024] = "";
  int wanted = 0;
  if (sscanf(arg, "%1023[^,],%d", directory, &wanted) != 2) return EINVAL;
  const int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  const int error = write_mebibytes(fd, wanted < 4096 ? wanted : 4096);
  close(fd);
  return error;
}
static int flood_stderr(const char* arg) { return write_mebibytes(STDERR_FILENO, atoi(arg)); }

// Spins for so many milliseconds of wall time, and tells the processor time that it had.
static int spin(const char* arg) {
  struct timespec start, now, used;
  clock_gettime(CLOCK_MONOTONIC, &start);
  const long wanted = atol(arg) < 20000 ? atol(arg) : 20000;
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < wanted);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  say("%ld", used.tv_sec * 1000 + used.tv_nsec / 1000000);
  return 0;
}

const struct attempt limit_attempts[] = {
    {"children", children},
    {"private_memory", private_memory},
    {"shared_memory", shared_memory},
    {"descriptors", descriptors},
    {"raise_descriptor_limit", raise_descriptor_limit},
    {"fill", fill},
    {"flood_stderr", flood_stderr},
    {"spin", spin},
    {NULL, NULL},
};
