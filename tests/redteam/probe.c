// Attempts to leave a sandbox, one line each:
//
//   redteam_probe [--direct] [--userns] ATTEMPT[=ARGUMENT]...
//   -> NAME OPEN detail | NAME shut ERRNO-or-SIGNAL detail
//
// Each attempt runs in a child of its own with 25 s to live, so that a kill is a result. Where no
// child can be made, and with --direct, it runs in the process itself. --userns first enters user,
// mount, network, IPC and UTS namespaces of its own: what root may do, without being root.
//
//   redteam_probe --without NUMBER ERRNO COMMAND ARGUMENT...
//
// runs a command on a kernel that lacks one system call.
//
// Every attempt is harmless when it succeeds: it touches what the test made, asks for nothing but
// an error, or undoes itself by ending.
#define _GNU_SOURCE
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { refused_to_start = 99, usage_error = 2, seconds_to_live = 25 };

char detail[4096];

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
}

int failed(long result) { return result < 0 ? errno : 0; }

long slurp(const char* path, char* buffer, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -errno;
  size_t length = 0;
  for (ssize_t got; length < size - 1; length += (size_t)got) {
    got = read(fd, buffer + length, size - 1 - length);
    if (got < 0 && length == 0) {
      const int error = errno;
      close(fd);
      return -error;
    }
    if (got <= 0) break;
  }
  close(fd);
  buffer[length] = '\0';
  return (long)length;
}

int target(const char* arg) {
  if (strcmp(arg, "self") == 0) return getpid();
  if (strcmp(arg, "parent") == 0) return getppid();
  if (strcmp(arg, "child") != 0) return atoi(arg);
  const pid_t pid = fork();
  if (pid < 0) return -errno;
  if (pid == 0) {
    alarm(seconds_to_live);
    pause();
    _exit(0);
  }
  return pid;
}

void release(const char* arg, int pid) {
  if (strcmp(arg, "child") != 0 || pid <= 0) return;
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

// The first range of the map starts at 0 and holds every id: the host's own namespace.
static int is_host_root(void) {
  char map[256];
  if (getuid() != 0) return 0;
  if (slurp("/proc/self/uid_map", map, sizeof map) <= 0) return 1;
  unsigned long inside = 1, outside = 1, count = 0;
  sscanf(map, "%lu %lu %lu", &inside, &outside, &count);
  return inside == 0 && outside == 0 && count > 65536;
}

static const char* signal_name(int number) {
  static char text[32];
  const char* name = sigabbrev_np(number);
  snprintf(text, sizeof text, "SIG%s", name ? name : "?");
  return text;
}

static void report(const char* name, const char* obstacle) {
  printf("%s %s%s%s%s\n", name, obstacle ? "shut " : "OPEN", obstacle ? obstacle : "",
         detail[0] ? " " : "", detail);
  fflush(stdout);
}

static void run_in_place(const char* name, attempt_fn* run, const char* arg) {
  detail[0] = '\0';
  errno = 0;
  const int error = run(arg);
  const char* text = error ? strerrorname_np(error) : NULL;
  report(name, error ? (text ? text : "error") : NULL);
}

static void run_in_child(const char* name, attempt_fn* run, const char* arg) {
  const pid_t child = fork();
  if (child < 0) {
    alarm(seconds_to_live);
    run_in_place(name, run, arg);
    alarm(0);
    return;
  }
  if (child == 0) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(seconds_to_live);
    run_in_place(name, run, arg);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    detail[0] = '\0';
    report(name, signal_name(WTERMSIG(status)));
  }
}

static attempt_fn* find(const char* name) {
  const struct attempt* lists[] = {file_attempts,  socket_attempts, call_attempts, process_attempts,
                                   limit_attempts, life_attempts,   race_attempts};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
    for (const struct attempt* at = lists[i]; at->name; ++at) {
      if (strcmp(at->name, name) == 0) return at->run;
    }
  }
  return NULL;
}

static void write_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) {
    perror(path);
    exit(usage_error);
  }
  close(fd);
}

static void enter_own_namespaces(void) {
  char map[64];
  const unsigned uid = getuid(), gid = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0) {
    perror("--userns");
    exit(usage_error);
  }
  write_file("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "0 %u 1", uid);
  write_file("/proc/self/uid_map", map);
  snprintf(map, sizeof map, "0 %u 1", gid);
  write_file("/proc/self/gid_map", map);
}

static int run_without(char** argv) {
  take_away(atol(argv[0]), atoi(argv[1]));
  execv(argv[2], argv + 2);
  perror(argv[2]);
  return usage_error;
}

int main(int argc, char** argv) {
  if (is_host_root()) return refused_to_start;
  if (argc > 4 && strcmp(argv[1], "--without") == 0) return run_without(argv + 2);
  int direct = 0;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--direct") == 0) {
      direct = 1;
    } else if (strcmp(argv[i], "--userns") == 0) {
      enter_own_namespaces();
    } else {
      char* arg = strchr(argv[i], '=');
      char name[64];
      snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[i], "="), argv[i]);
      attempt_fn* run = find(name);
      if (!run) {
        fprintf(stderr, "redteam_probe: no attempt is called %s\n", name);
        return usage_error;
      }
      (direct ? run_in_place : run_in_child)(argv[i], run, arg ? arg + 1 : "");
    }
  }
  return 0;
}
