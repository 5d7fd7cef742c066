// One attempt of a server in the guest, or `become UID COMMAND...`, which starts one.
// Prints what came of it as one line. Static, because the guest has no libraries.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { mebi = 1 << 20, stack = 64 << 10 };

static int say(const char* what, long count) {
  printf("%s %ld\n", what, count);
  fflush(stdout);
  return 0;
}

static int failed(const char* call) {
  printf("%s: %s\n", call, strerror(errno));
  return 1;
}

static int become(uid_t uid, char** command) {
  if (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0) {
    return failed("become");
  }
  execvp(command[0], command);
  return failed(command[0]);
}

// Every page is written, for the limit counts only what is used.
static int hold(long megabytes, int sharing) {
  for (long held = 0; held < megabytes; ++held) {
    char* page = mmap(NULL, mebi, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return failed("mmap");
    memset(page, 1, mebi);
  }
  return say("held", megabytes);
}

// Memory that belongs to a file, and is mapped nowhere.
static int fill(int file, long megabytes) {
  static char block[mebi];
  if (file < 0) return failed("open");
  for (long held = 0; held < megabytes; ++held) {
    if (write(file, block, mebi) != mebi) return failed("write");
  }
  return say("held", megabytes);
}

static void wait_for_end_of_input(void) {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

static void* stay(void* unused) {
  (void)unused;
  pause();
  return NULL;
}

static int threads(long wanted) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, stack);
  long made = 1;
  pthread_t thread;
  while (made < wanted && pthread_create(&thread, &small, stay, NULL) == 0) ++made;
  return say("threads", made);
}

static long milliseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// The share of the processor that it gets in two seconds of work, in percent.
static int burn(void) {
  const long span = 2000;
  const long start = milliseconds(CLOCK_MONOTONIC);
  const long used = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
  while (milliseconds(CLOCK_MONOTONIC) - start < span) {
  }
  const long passed = milliseconds(CLOCK_MONOTONIC) - start;
  return say("percent", (milliseconds(CLOCK_PROCESS_CPUTIME_ID) - used) * 100 / passed);
}

static int write_file(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (file < 0) return failed("open");
  return write(file, "written", 7) == 7 ? say("written", 7) : failed("write");
}

static int read_file(const char* path) {
  char text[64];
  const int file = open(path, O_RDONLY);
  if (file < 0) return failed("open");
  const long size = read(file, text, sizeof(text));
  return size < 0 ? failed("read") : say("read", size);
}

// The first page of a web server, by ADDRESS PORT HOST. Plain sockets: busybox's wget asks for
// names, which a static libc cannot do without its libraries.
static int fetch(char** words) {
  struct sockaddr_in origin = {.sin_family = AF_INET};
  origin.sin_port = htons((unsigned short)strtol(words[1], NULL, 10));
  if (inet_pton(AF_INET, words[0], &origin.sin_addr) != 1) return failed("address");
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(connection, (struct sockaddr*)&origin, sizeof(origin)) != 0) return failed("connect");
  FILE* stream = fdopen(connection, "r+");
  fprintf(stream, "GET / HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n", words[2], words[1]);
  fflush(stream);
  char line[512];
  while (fgets(line, sizeof(line), stream) != NULL) {
    if (strcmp(line, "\r\n") == 0) break;
  }
  if (fgets(line, sizeof(line), stream) == NULL) return failed("read");
  fputs(line, stdout);
  return 0;
}

int main(int count, char** words) {
  const char* verb = count > 1 ? words[1] : "";
  char* subject = count > 2 ? words[2] : "";
  const long number = strtol(subject, NULL, 10);
  if (strcmp(verb, "become") == 0 && count > 3) return become((uid_t)number, words + 3);
  if (strcmp(verb, "hold") == 0) return hold(number, MAP_PRIVATE);
  if (strcmp(verb, "share") == 0) {
    const int status = hold(number, MAP_SHARED);
    wait_for_end_of_input();
    return status;
  }
  if (strcmp(verb, "memfd") == 0) {
    const int status = fill(memfd_create("probe", 0), number);
    wait_for_end_of_input();
    return status;
  }
  if (strcmp(verb, "tmpfs") == 0) {
    const int status = fill(open("/tmp/fill", O_WRONLY | O_CREAT | O_EXCL, 0600), number);
    wait_for_end_of_input();
    return status;
  }
  if (strcmp(verb, "threads") == 0) {
    const int status = threads(number);
    wait_for_end_of_input();
    return status;
  }
  if (strcmp(verb, "burn") == 0) return burn();
  if (strcmp(verb, "fetch") == 0 && count == 5) return fetch(words + 2);
  if (strcmp(verb, "write") == 0) return write_file(subject);
  if (strcmp(verb, "read") == 0) return read_file(subject);
  if (strcmp(verb, "remove") == 0)
    return unlink(subject) == 0 ? say("removed", 1) : failed("unlink");
  if (strcmp(verb, "truncate") == 0) {
    return truncate(subject, 0) == 0 ? say("truncated", 1) : failed("truncate");
  }
  fprintf(stderr, "probe: unknown attempt %s\n", verb);
  return 2;
}
