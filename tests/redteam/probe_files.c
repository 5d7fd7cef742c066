// Files, mounts, terminals, and what /proc tells about others.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe.h"

// Line ends would end the report: they are shown as '|', NULs as ','.
static void show(const char* bytes, long length) {
  size_t used = strlen(detail);
  for (long i = 0; i < length && used < sizeof detail - 1; ++i) {
    detail[used++] = bytes[i] == '\n' ? '|' : bytes[i] == '\0' ? ',' : bytes[i];
  }
  detail[used] = '\0';
}

static int read_file(const char* path) {
  static char text[4096];
  const long length = slurp(path, text, sizeof text);
  if (length < 0) return (int)-length;
  show(text, length);
  return 0;
}

static int open_and_close(const char* path, int flags, mode_t mode) {
  const int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
  const int error = failed(fd);
  if (fd >= 0) close(fd);
  return error;
}

static int open_read(const char* path) { return open_and_close(path, O_RDONLY, 0); }
static int open_write(const char* path) { return open_and_close(path, O_WRONLY, 0); }
static int create(const char* path) {
  return open_and_close(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
}
// A file without a name, gone at once.
static int create_nameless(const char* directory) {
  return open_and_close(directory, O_TMPFILE | O_WRONLY, 0600);
}
static int stat_path(const char* path) {
  struct stat info;
  return failed(lstat(path, &info));
}
static int make_directory(const char* path) { return failed(mkdir(path, 0700)); }
static int remove_path(const char* path) { return failed(remove(path)); }

static int append(const char* path) {
  const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = failed(write(fd, "true\n", 5));
  close(fd);
  return error;
}

// FROM,TO
static int with_two(const char* arg, int (*call)(const char*, const char*)) {
  char from[2048];
  const char* comma = strchr(arg, ',');
  if (!comma) return EINVAL;
  snprintf(from, sizeof from, "%.*s", (int)(comma - arg), arg);
  return failed(call(from, comma + 1));
}
static int rename_path(const char* arg) { return with_two(arg, rename); }
static int link_path(const char* arg) { return with_two(arg, link); }
// TARGET,PATH
static int symlink_path(const char* arg) { return with_two(arg, symlink); }

static int read_link(const char* path) {
  char text[1024];
  const ssize_t length = readlink(path, text, sizeof text);
  if (length < 0) return errno;
  show(text, length);
  return 0;
}

static int list(const char* path) {
  DIR* directory = opendir(path);
  if (!directory) return errno;
  for (struct dirent* entry; (entry = readdir(directory));) {
    if (entry->d_name[0] == '.' && strlen(entry->d_name) < 3) continue;
    show(entry->d_name, (long)strlen(entry->d_name) + 1);
  }
  closedir(directory);
  return 0;
}

// A field of /proc/self/status.
static int status_field(const char* field) {
  static char text[4096];
  const long length = slurp("/proc/self/status", text, sizeof text);
  if (length < 0) return (int)-length;
  char wanted[64];
  snprintf(wanted, sizeof wanted, "\n%s:", field);
  const char* at = strstr(text, wanted);
  if (!at) return ENOENT;
  at += strlen(wanted);
  at += strspn(at, "\t ");
  show(at, (long)strcspn(at, "\n"));
  return 0;
}

// ---- modes, devices, mounts -------------------------------------------------------------------

static int mode_bits(const char* arg, mode_t bits) {
  const int fd = open(arg, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  const int error = failed(fchmod(fd, bits));
  close(fd);
  return error;
}
static int chmod_setuid(const char* path) { return mode_bits(path, 04755); }
static int chmod_setgid(const char* path) { return mode_bits(path, 02755); }
static int chmod_path_setuid(const char* path) {
  const int error = mode_bits(path, 0600);
  return error ? error : failed(syscall(SYS_fchmodat, AT_FDCWD, path, 04755));
}
static int open_setuid(const char* path) {
  umask(0);
  return open_and_close(path, O_CREAT | O_EXCL | O_WRONLY, 04755);
}
static int mkdir_setgid(const char* path) {
  // mkdir ignores the bit on Linux where no parent passes it on: what counts is who answers.
  return failed(mkdir(path, 02755));
}
// Device 0:0, the only one that an ordinary user may make: it opens nothing.
static int make_device(const char* path) {
  return failed(mknod(path, S_IFCHR | 0600, makedev(0, 0)));
}

// A device node that is itself a mount cannot be nodev: it would open nothing.
static int is_device(const char* point) {
  struct stat info;
  return stat(point, &info) == 0 && S_ISCHR(info.st_mode);
}

// Finds mounts that lack nosuid or nodev. OPEN: there are some, and they are listed.
static int loose_mounts(const char* arg) {
  (void)arg;
  FILE* file = fopen("/proc/self/mountinfo", "re");
  if (!file) return errno;
  char line[4096], point[1024], options[1024];
  int found = 0;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%*s %*s %*s %*s %1023s %1023s", point, options) != 2) continue;
    if (strstr(options, "nosuid") && (strstr(options, "nodev") || is_device(point))) continue;
    found = 1;
    show(point, (long)strlen(point) + 1);
  }
  fclose(file);
  return found ? 0 : ENOENT;
}

static int capacity(const char* path) {
  struct statvfs info;
  if (statvfs(path, &info) != 0) return errno;
  say("%llu", (unsigned long long)info.f_frsize * info.f_blocks);
  return 0;
}

// ---- terminals ----------------------------------------------------------------------------------

static int tiocsti(const char* arg) {
  (void)arg;
  return failed(ioctl(STDIN_FILENO, TIOCSTI, "~"));
}
// The upper half of the command is ignored by the kernel: a filter that compares 64 bits is passed.
static int tiocsti_high(const char* arg) {
  (void)arg;
  return failed(syscall(SYS_ioctl, STDIN_FILENO, TIOCSTI | (1UL << 32), "~"));
}
// Shift state: reads only. On what is no console the kernel's own answer is ENOTTY.
static int tioclinux(const char* arg) {
  (void)arg;
  char subcode = 6;
  return failed(ioctl(STDIN_FILENO, TIOCLINUX, &subcode));
}

// ---- other processes, through /proc
// ---------------------------------------------------------------

typedef int process_fn(const char* pid, const char* arg);

// Runs `visit` for every visible process but the caller. 0 if one of them got through.
static int each_process(process_fn* visit, const char* arg) {
  DIR* directory = opendir("/proc");
  if (!directory) return errno;
  int result = ESRCH, seen = 0;
  for (struct dirent* entry; (entry = readdir(directory));) {
    const int pid = atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    ++seen;
    const int error = visit(entry->d_name, arg);
    if (error == 0) {
      result = 0;
    } else if (result != 0) {
      result = error;
    }
  }
  closedir(directory);
  say("of %d", seen);
  return result;
}

static int has_canary(const char* pid, const char* canary) {
  static char text[65536];
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/environ", pid);
  const long length = slurp(path, text, sizeof text);
  if (length < 0) return (int)-length;
  return memmem(text, (size_t)length, canary, strlen(canary)) ? 0 : ENOENT;
}
static int opens_mem(const char* pid, const char* arg) {
  (void)arg;
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/mem", pid);
  return open_and_close(path, O_RDWR, 0);
}
static int others_environ(const char* canary) { return each_process(has_canary, canary); }
static int others_mem(const char* arg) { return each_process(opens_mem, arg); }

// The numbers of the visible processes.
static int processes(const char* arg) {
  (void)arg;
  DIR* directory = opendir("/proc");
  if (!directory) return errno;
  for (struct dirent* entry; (entry = readdir(directory));) {
    if (atoi(entry->d_name) > 0) show(entry->d_name, (long)strlen(entry->d_name) + 1);
  }
  closedir(directory);
  return 0;
}

const struct attempt file_attempts[] = {
    {"read", read_file},
    {"open_read", open_read},
    {"open_write", open_write},
    {"create", create},
    {"create_nameless", create_nameless},
    {"stat", stat_path},
    {"mkdir", make_directory},
    {"remove", remove_path},
    {"append", append},
    {"rename", rename_path},
    {"link", link_path},
    {"symlink", symlink_path},
    {"readlink", read_link},
    {"list", list},
    {"status", status_field},
    {"chmod_setuid", chmod_setuid},
    {"chmod_setgid", chmod_setgid},
    {"chmod_path_setuid", chmod_path_setuid},
    {"open_setuid", open_setuid},
    {"mkdir_setgid", mkdir_setgid},
    {"mknod", make_device},
    {"loose_mounts", loose_mounts},
    {"capacity", capacity},
    {"tiocsti", tiocsti},
    {"tiocsti_high", tiocsti_high},
    {"tioclinux", tioclinux},
    {"others_environ", others_environ},
    {"others_mem", others_mem},
    {"processes", processes},
    {NULL, NULL},
};
