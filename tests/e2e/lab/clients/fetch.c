// fetch http://HOST[:PORT]/...: one line for each URL, its status or its error, over plain HTTP.
// For another C library than the machine's: built with musl, statically.
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int connect_to(const struct addrinfo* found) {
  const struct timeval seconds = {25, 0};
  int fd = -1;
  for (; found && fd < 0; found = found->ai_next) {
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &seconds, sizeof seconds);
    if (connect(fd, found->ai_addr, found->ai_addrlen) == 0) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    fd = -1;
  }
  return fd;
}

static void fetch(const char* url) {
  char host[256] = "", port[8] = "80";
  const char* format = strchr(url, '[') ? "http://[%255[^]]]:%7[0-9]" : "http://%255[^:/]:%7[0-9]";
  if (sscanf(url, format, host, port) < 1) exit(2);
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  const int problem = getaddrinfo(host, port, &hints, &found);
  if (problem != 0) {
    printf("%s error %s\n", url, gai_strerror(problem));
    return;
  }
  const int fd = connect_to(found);
  freeaddrinfo(found);
  char reply[4096];
  const int length = snprintf(reply, sizeof reply,
                              "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host);
  ssize_t got = -1;
  if (fd >= 0 && write(fd, reply, (size_t)length) == length)
    got = read(fd, reply, sizeof reply - 1);
  reply[got > 0 ? got : 0] = '\0';
  int status = 0;
  if (sscanf(reply, "HTTP/1.1 %d", &status) == 1) {
    printf("%s %d\n", url, status);
  } else {
    printf("%s error %s\n", url, got == 0 ? "closed" : strerror(errno));
  }
  if (fd >= 0) close(fd);
}

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) fetch(words[i]);
  return 0;
}
