#include "sandbox/audit_file.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "base/text.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

std::unexpected<Refusal> refuse(std::string message, std::string help) {
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}

constexpr std::string_view name_a_file =
    "without a log nothing may be reached: name a file of yours with --audit FILE, or set "
    "XDG_STATE_HOME to a directory that you can write";

std::unexpected<Refusal> refuse_file(const std::string& path, int error) {
  return refuse(
      format("cannot write the audit log {}: {}", escape_for_terminal(path), std::strerror(error)),
      std::string(name_a_file));
}

bool is_same(const Identity& one, const Identity& other) {
  return one.device == other.device && one.inode == other.inode;
}

// The grant through which the server could write what has this identity; null: none.
const BoundMount* writable_mount(const Bound& bound, const Identity& identity) {
  const auto found = std::ranges::find_if(bound.mounts, [&](const BoundMount& mount) {
    return mount.kind == orders::MountKind::bind && mount.identity.inode != 0 &&
           (mount.attributes & MOUNT_ATTR_RDONLY) == 0 && is_same(mount.identity, identity);
  });
  return found == bound.mounts.end() ? nullptr : &*found;
}

std::unexpected<Refusal> refuse_reach(const std::string& path, const BoundMount& mount) {
  return refuse(format("the server could change the audit log {}: it may write {}",
                       escape_for_terminal(path), escape_for_terminal(mount.target)),
                "name a file outside of what is granted with --audit FILE");
}

struct Place {
  sys::Fd directory;
  std::string name;
};

// The directory that holds the file. It and each one above it, by descriptors, so that no link
// leads astray, before the file is made: a refusal leaves nothing behind.
std::expected<Place, Refusal> open_out_of_reach(const std::string& path, const Bound& bound) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                                           : path.substr(0, slash);
  Place place{.directory = sys::Fd(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
              .name = slash == std::string::npos ? path : path.substr(slash + 1)};
  if (place.directory.get() < 0) return refuse_file(path, errno);
  sys::Fd at(::openat(place.directory.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (;;) {
    const auto here = at.get() < 0 ? std::unexpected(errno) : identify(at.get());
    if (!here) return refuse("cannot look above the audit log", std::string(name_a_file));
    if (const BoundMount* mount = writable_mount(bound, *here)) return refuse_reach(path, *mount);
    sys::Fd above(::openat(at.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto parent = above.get() < 0 ? std::unexpected(errno) : identify(above.get());
    if (!parent) return refuse("cannot look above the audit log", std::string(name_a_file));
    if (is_same(*parent, *here)) return place;
    at = std::move(above);
  }
}

std::expected<std::string, Refusal> path_of(const AuditPlace& place) {
  if (!place.file.empty()) return place.file;
  auto made = sys::make_directories(place.directory);
  if (!made) {
    return refuse(format("cannot make {}: {}", escape_for_terminal(made.error().subject),
                         sys::reason(made.error())),
                  std::string(name_a_file));
  }
  return *made + "/" + place.name;
}

}  // namespace

std::expected<AuditFile, Refusal> open_audit_file(const AuditPlace& place, const Bound& bound) {
  AuditFile audit{.fd = {}, .path = TRY(path_of(place))};
  const std::string shown = escape_for_terminal(audit.path);
  const Place checked = TRY(open_out_of_reach(audit.path, bound));
  // Without waiting: it could be a pipe that nobody reads.
  constexpr int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  audit.fd = sys::Fd(::openat(checked.directory.get(), checked.name.c_str(), flags, 0600));
  if (audit.fd.get() < 0) return refuse_file(audit.path, errno);
  struct stat info{};
  if (::fstat(audit.fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink != 1) {
    return refuse(format("the audit log {} is no regular file with one name", shown),
                  std::string(name_a_file));
  }
  const auto file = identify(audit.fd.get());
  if (!file) return refuse("cannot look at the audit log", std::string(name_a_file));
  if (const BoundMount* mount = writable_mount(bound, *file)) {
    return refuse_reach(audit.path, *mount);
  }
  // It was there before: whoever else can write it could change what it says.
  if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse(format("others than you can write the audit log {}", shown),
                  "name a file of yours with --audit FILE, and chmod go-w it");
  }
  if (::syscall(SYS_flock, audit.fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return refuse(format("the audit log {} is written by another run", shown),
                  "give each run a file of its own with --audit FILE");
  }
  return audit;
}

std::string audit_name(std::string_view server, std::string_view sandbox) {
  std::string name(server.substr(0, 64));
  std::ranges::replace_if(
      name, [](char c) { return !is_lower(c) && !is_upper(c) && !is_digit(c) && c != '-'; }, '_');
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char time[32] = {};
  (void)std::strftime(time, sizeof(time), "%Y%m%dT%H%M%SZ", &utc);
  return format("{}-{}-{}.jsonl", time, name.empty() ? "server" : name, sandbox);
}

}  // namespace capgate::sandbox
