// A server's life: how it ends, and who outlives it. Used with --direct, except for `zombies`.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

enum { longest_life = 25 };  // less than the 30 s that a test waits

static void tell(const char* word) {
  if (write(STDOUT_FILENO, word, strlen(word)) < 0) _exit(1);
}

static void sleep_milliseconds(long count) {
  struct timespec left = {count / 1000, (count % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static int exit_with(const char* arg) { _exit(atoi(arg)); }
static int die_by(const char* arg) {
  signal(atoi(arg), SIG_DFL);
  kill(getpid(), atoi(arg));
  return ESRCH;
}

// Copies its input to its output, as it comes, until the end of it; then ends with this status.
static int echo(const char* arg) {
  char block[65536];
  for (ssize_t got; (got = read(STDIN_FILENO, block, sizeof block)) > 0;) {
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t more = write(STDOUT_FILENO, block + sent, (size_t)(got - sent));
      if (more < 0) _exit(1);
      sent += more;
    }
  }
  _exit(atoi(arg));
}

static long handler_milliseconds;
static void finish_work(int number) {
  (void)number;
  sleep_milliseconds(handler_milliseconds);
  tell("finished\n");
  _exit(7);
}
static _Noreturn void sleep_forever(void) {
  alarm(longest_life);
  tell("ready\n");
  for (;;) pause();
}

// Says "ready"; at TERM works for so many milliseconds, says "finished" and ends with 7.
static int term_handler(const char* arg) {
  handler_milliseconds = atol(arg);
  signal(SIGTERM, finish_work);
  sleep_forever();
}
// Says "ready" and ignores what can be ignored.
static int stubborn(const char* arg) {
  (void)arg;
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  sleep_forever();
}

static void beat(const char* path) {
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) _exit(1);
  // The output of the server must not be what keeps it or its reader waiting.
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  for (int i = 0; i < longest_life * 50; ++i) {
    if (write(fd, ".", 1) != 1) _exit(1);
    sleep_milliseconds(20);
  }
  _exit(0);
}
// A grandchild in a session of its own writes to the file for at most 25 s. The server itself says
// "ready" once it beats, and waits for the end of its input.
static int heartbeat(const char* path) {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    setsid();
    if (fork() == 0) beat(path);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  tell("ready\n");
  return echo("0");
}

static int count_zombies(void) {
  DIR* directory = opendir("/proc");
  int count = 0;
  for (struct dirent* entry; directory && (entry = readdir(directory));) {
    char path[300], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
    if (atoi(entry->d_name) <= 0 || slurp(path, text, sizeof text) <= 0) continue;
    const char* state = strrchr(text, ')');
    count += state && state[2] == 'Z';
  }
  if (directory) closedir(directory);
  return count;
}
// COUNT,MILLISECONDS: orphans that end at once, and the time that an init has to reap them. OPEN:
// some are left.
static int zombies(const char* arg) {
  int count = 0, milliseconds = 0;
  if (sscanf(arg, "%d,%d", &count, &milliseconds) != 2) return EINVAL;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return errno;
    if (child == 0) {
      if (fork() == 0) _exit(0);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  for (int i = 0; i < milliseconds / 10 && count_zombies() > 0; ++i) sleep_milliseconds(10);
  say("%d", count_zombies());
  return count_zombies() > 0 ? 0 : ESRCH;
}

const struct attempt life_attempts[] = {
    {"exit", exit_with},    {"die", die_by},
    {"echo", echo},         {"term_handler", term_handler},
    {"stubborn", stubborn}, {"heartbeat", heartbeat},
    {"zombies", zombies},   {NULL, NULL},
};
