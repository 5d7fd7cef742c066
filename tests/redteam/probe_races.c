// Races between a check and its use, and a launcher that takes one system call away.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

enum { rounds = 10000, least_changes = 1000 };

// Says "ready", waits for a line, then reads for at most 2 s until the file is gone, refused or
// empty. OPEN: it never was.
static int stays_readable(const char* path) {
  char text[256], line[16];
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return errno;
  if (read(STDIN_FILENO, line, sizeof line) < 0) return errno;
  for (int i = 0; i < 200; ++i) {
    const long length = slurp(path, text, sizeof text);
    if (length < 0) return (int)-length;
    if (length == 0) return ENODATA;
    const struct timespec pause = {0, 10000000};
    nanosleep(&pause, NULL);
  }
  return 0;
}

// ---- a second thread changes what the first one's pointer points to -----------------------------

struct flip {
  volatile char* at;
  const char* values[2];
  size_t size;
  volatile int stop;
  volatile unsigned passes;
  unsigned seen, changes;
  int tried;
};

// True until there were enough attempts, and enough of them met another value than the one before:
// on a busy machine all of them may fall into a time in which the other thread does not run.
static int goes_on(struct flip* flip) {
  const unsigned passes = flip->passes;
  flip->changes += passes != flip->seen;
  flip->seen = passes;
  return flip->tried++ < rounds || (flip->changes < least_changes && flip->tried < 200 * rounds);
}

static void* flip_until_stopped(void* arg) {
  struct flip* flip = arg;
  for (unsigned i = 0; !flip->stop; ++i) {
    for (size_t k = 0; k < flip->size; ++k) flip->at[k] = flip->values[i & 1][k];
    flip->passes = i;
  }
  return NULL;
}

// ALLOWED,DENIED: two paths of equal length. The denied file starts with a 'c'.
static int race_open(const char* arg) {
  static char path[1024], first[1024], second[1024];
  if (sscanf(arg, "%1023[^,],%1023s", first, second) != 2) return EINVAL;
  if (strlen(first) != strlen(second)) return EINVAL;
  strcpy(path, first);
  struct flip flip = {.at = path, .values = {first, second}, .size = strlen(first)};
  pthread_t worker;
  if (pthread_create(&worker, NULL, flip_until_stopped, &flip) != 0) return EAGAIN;
  int opened = 0, leaked = 0;
  while (goes_on(&flip)) {
    char byte = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    ++opened;
    leaked += read(fd, &byte, 1) == 1 && byte == 'c';
    close(fd);
  }
  flip.stop = 1;
  pthread_join(worker, NULL);
  say("%d of %d opened, %d leaked", opened, flip.tried, leaked);
  return leaked ? 0 : EACCES;
}

static int own_listener(struct sockaddr_in* address) {
  socklen_t size = sizeof *address;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  memset(address, 0, sizeof *address);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || bind(fd, (struct sockaddr*)address, size) != 0 || listen(fd, 64) != 0) return -1;
  return getsockname(fd, (struct sockaddr*)address, &size) == 0 ? fd : -1;
}

// On loopback that is always so, unless the listener's queue is full.
static int connects_at_once(int fd, const struct sockaddr_in* address) {
  if (connect(fd, (const struct sockaddr*)address, sizeof *address) == 0) return 1;
  struct pollfd ready = {.fd = fd, .events = POLLOUT};
  int error = errno;
  socklen_t size = sizeof error;
  if (error != EINPROGRESS || poll(&ready, 1, 1) != 1) return 0;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

// PORT of a listener of the host. OPEN only by the count of that listener: here, the connects.
static int race_connect(const char* arg) {
  struct sockaddr_in own, host, address;
  const int listener = own_listener(&own);
  if (listener < 0) return errno;
  host = address = own;
  host.sin_port = htons((uint16_t)atoi(arg));
  struct flip flip = {.at = (volatile char*)&address,
                      .values = {(const char*)&own, (const char*)&host},
                      .size = sizeof address};
  pthread_t worker;
  if (pthread_create(&worker, NULL, flip_until_stopped, &flip) != 0) return EAGAIN;
  int connected = 0, elsewhere = 0;
  while (goes_on(&flip)) {
    const struct linger at_once = {1, 0};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (connects_at_once(fd, &address)) {
      const int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
      ++connected;
      elsewhere += peer < 0;
      if (peer >= 0) close(peer);
    }
    close(fd);
  }
  flip.stop = 1;
  pthread_join(worker, NULL);
  say("%d of %d connected, %d elsewhere", connected, flip.tried, elsewhere);
  return elsewhere ? 0 : ECONNREFUSED;
}

const struct attempt race_attempts[] = {
    {"stays_readable", stays_readable},
    {"race_open", race_open},
    {"race_connect", race_connect},
    {NULL, NULL},
};

// ---- a kernel that lacks one call
// -------------------------------------------------------------------

void take_away(long number, int error) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("--without");
    _exit(2);
  }
}
