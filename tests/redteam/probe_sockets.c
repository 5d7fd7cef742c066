// Sockets: families, services of the host, descriptors that they hand over.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

// FAMILY,TYPE,PROTOCOL as numbers.
static int make_socket(const char* arg) {
  int family = -1, type = 0, protocol = 0;
  if (sscanf(arg, "%d,%d,%d", &family, &type, &protocol) < 2) return EINVAL;
  const int fd = socket(family, type | SOCK_CLOEXEC, protocol);
  const int error = failed(fd);
  if (fd >= 0) close(fd);
  return error;
}

static int make_pair(const char* arg) {
  int family = -1, type = 0, fds[2];
  if (sscanf(arg, "%d,%d", &family, &type) != 2) return EINVAL;
  if (socketpair(family, type | SOCK_CLOEXEC, 0, fds) != 0) return errno;
  close(fds[0]);
  close(fds[1]);
  return 0;
}

static void wait_no_longer_than_a_second(int fd) {
  const struct timeval second = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
}

// A path, or with '@' an abstract name. Returns a descriptor or -errno.
static int connect_unix(const char* name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strlen(name);
  if (length >= sizeof address.sun_path) return -ENAMETOOLONG;
  memcpy(address.sun_path, name, length);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  wait_no_longer_than_a_second(fd);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
  if (connect(fd, (const struct sockaddr*)&address, size) == 0) return fd;
  const int error = errno;
  close(fd);
  return -error;
}

static int first_words(int fd) {
  char text[128];
  const ssize_t length = recv(fd, text, sizeof text - 1, 0);
  const int error = failed(length);
  close(fd);
  if (error) return error;
  say("%.*s", (int)length, text);
  return 0;
}

static int unix_service(const char* name) {
  const int fd = connect_unix(name);
  return fd < 0 ? -fd : first_words(fd);
}

// ADDRESS,PORT
static int tcp_service(const char* arg) {
  char host[64] = "";
  int port = 0;
  if (sscanf(arg, "%63[^,],%d", host, &port) != 2) return EINVAL;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) return EINVAL;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  wait_no_longer_than_a_second(fd);
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  return first_words(fd);
}

// Reads through a descriptor that the service passes along.
static int passed_descriptor(const char* name) {
  const int fd = connect_unix(name);
  if (fd < 0) return -fd;
  char byte;
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
  } control;
  struct iovec into = {&byte, 1};
  struct msghdr message = {.msg_iov = &into,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  const int error = failed(recvmsg(fd, &message, MSG_CMSG_CLOEXEC));
  close(fd);
  if (error) return error;
  const struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_RIGHTS) return ENOMSG;
  int passed = -1;
  memcpy(&passed, CMSG_DATA(header), sizeof passed);
  char text[256];
  const ssize_t length = pread(passed, text, sizeof text - 1, 0);
  if (length < 0) return errno;
  say("%.*s", (int)length, text);
  return 0;
}

const struct attempt socket_attempts[] = {
    {"socket", make_socket},
    {"socketpair", make_pair},
    {"unix", unix_service},
    {"tcp", tcp_service},
    {"passed_descriptor", passed_descriptor},
    {NULL, NULL},
};
