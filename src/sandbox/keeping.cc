#include "sandbox/keeping.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/format.h"
#include "core/path.h"
#include "sandbox/git_config.h"
#include "sandbox/host_path.h"

namespace capgate::sandbox {
namespace {

using Check = HeldNames::Check;
using Treatment = HeldNames::Treatment;

constexpr std::uint64_t always = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
// More than a person makes while a server runs; less than a server can make to wear us out.
constexpr std::size_t most_directories = 1024;
constexpr int most_set_aside = 1000;  // of one name
constexpr int last_reads = 128;       // after the end: more than the kernel keeps for us
constexpr std::size_t largest_config = 1U << 20U;
// A held entry that is gone and comes back within this time was replaced, as `git checkout` does.
constexpr std::chrono::seconds replaced_within{2};

sys::Fd open_at(int directory, const std::string& path, std::uint64_t flags, std::uint64_t more) {
  const open_how how{.flags = flags | O_CLOEXEC | O_NOFOLLOW,
                     .mode = 0,
                     .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | more};
  return sys::Fd(
      static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how))));
}

struct Seen {
  std::uint32_t type = 0;
  std::uint32_t mode = 0;
  bool is_mount = false;
};

std::optional<Seen> look(int fd) {
  struct statx info{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE, &info) != 0) return std::nullopt;
  return Seen{.type = info.stx_mode & static_cast<std::uint32_t>(S_IFMT),
              .mode = info.stx_mode,
              .is_mount = (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0};
}

std::vector<std::string> names_in(const sys::Fd& directory) {
  std::vector<std::string> out;
  const sys::Fd listed(::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  alignas(dirent64) char buffer[32768];
  for (;;) {
    const ssize_t size = ::getdents64(listed.get(), buffer, sizeof(buffer));
    if (size <= 0) return out;
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") out.emplace_back(name);
    }
  }
}

// The setting that git would obey and should not, if any. A file that cannot be read is one.
std::optional<std::string> foreign_setting(int directory, const std::string& name) {
  const sys::Fd file = open_at(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, RESOLVE_BENEATH);
  if (file.get() < 0) return "contents that cannot be read";
  std::string text(largest_config + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return "contents that cannot be read";
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > largest_config) return "more than a megabyte";
  text.resize(size);
  return foreign_git_setting(text);
}

// One that git runs. No name of a hook has a dot: git's own examples end in .sample, and what was
// set aside in a number.
bool is_hook(const std::string& name, const Seen& seen) {
  if (name.contains('.')) return false;
  if (seen.type == S_IFLNK) return true;
  return seen.type == S_IFREG && (seen.mode & 0111U) != 0;
}

}  // namespace

// ---- reports ------------------------------------------------------------------------------------

// The kind, then path, name and reason, each with a NUL behind it.
void Keeping::tell(Kept::Kind kind, const std::string& path, const std::string& name,
                   const std::string& why) const {
  std::string message(1, static_cast<char>(kind));
  for (const std::string* part : {&path, &name, &why}) message.append(*part).push_back('\0');
  // Blocks while the supervisor is behind: what it is told must not be lost.
  while (::send(descriptors_.reports, message.data(), message.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) ::_exit(1);
  }
}

void Keeping::fail(int reports, std::string_view why, Kept::Kind kind) {
  std::string message(1, static_cast<char>(kind));
  message.append(2, '\0').append(why).push_back('\0');
  (void)::send(reports, message.data(), message.size(), MSG_NOSIGNAL);
  ::_exit(1);
}

void Keeping::give_up(std::string_view what, const std::string& path) const {
  fail(descriptors_.reports, format("{} cannot be {}: {}", path, what, std::strerror(errno)));
}

Kept Keeping::read_report(std::string_view message) {
  Kept out;
  if (message.empty()) return out;
  out.kind = static_cast<Kept::Kind>(message.front());
  message.remove_prefix(1);
  for (std::string* part : {&out.path, &out.name, &out.why}) {
    const std::size_t end = std::min(message.find('\0'), message.size());
    *part = message.substr(0, end);
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  return out;
}

// ---- events -------------------------------------------------------------------------------------

Keeping::Keeping(const Descriptors& descriptors, Watched& watched)
    : descriptors_(descriptors),
      watched_(watched),
      root_(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  watched_.events = sys::Fd(descriptors.events);
}

sys::Fd Keeping::open(const std::string& path) const {
  return open_at(root_.get(), path, O_PATH, RESOLVE_IN_ROOT);
}

void Keeping::run(pid_t parent) {
  if (root_.get() < 0) fail(descriptors_.reports, "the sandbox has no root");
  if (::getppid() != parent) ::_exit(0);
  for (;;) {
    pollfd polls[2] = {{descriptors_.events, POLLIN, 0}, {descriptors_.reports, POLLRDHUP, 0}};
    if (::poll(polls, 2, -1) < 0 && errno != EINTR) fail(descriptors_.reports, "poll");
    if (polls[0].revents != 0) (void)handle_events();
    if (polls[1].revents == 0) continue;
    // The server makes no more of them; the host may, without end.
    for (int i = 0; i < last_reads && handle_events(); ++i) {
    }
    ::_exit(0);
  }
}

// When the kernel dropped events.
void Keeping::look_at_everything() {
  std::vector<WatchedDirectory> directories;
  directories.reserve(watched_.directories.size());
  for (const auto& [watch, directory] : watched_.directories) directories.push_back(directory);
  for (const WatchedDirectory& directory : directories) {
    const sys::Fd fd = open(directory.path);
    if (fd.get() < 0) continue;
    for (const std::string& name : names_in(fd)) look_at(directory, name);
  }
}

// False if there are none. What counts is how an entry is now: once is enough for many events.
bool Keeping::handle_events() {
  alignas(inotify_event) char buffer[65536];
  const ssize_t size = ::read(descriptors_.events, buffer, sizeof(buffer));
  if (size < 0) return errno == EINTR;
  std::set<std::pair<int, std::string_view>> handled;
  for (ssize_t at = 0; at < size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    const std::string_view name = event->len > 0 ? event->name : "";
    if (!name.empty() && !handled.emplace(event->wd, name).second) continue;
    handle(event->wd, event->mask, name);
  }
  return size > 0;
}

void Keeping::handle(int watch, std::uint32_t what, std::string_view name) {
  if ((what & IN_Q_OVERFLOW) != 0) return look_at_everything();
  const auto found = watched_.directories.find(watch);
  if (found == watched_.directories.end()) return;
  if ((what & IN_IGNORED) != 0) {  // the directory is gone
    watched_.directories.erase(found);
    return;
  }
  if (name.empty()) return;
  look_at(WatchedDirectory(found->second), std::string(name));
}

// An entry of a watched directory, which may have changed or may be gone.
void Keeping::look_at(const WatchedDirectory& directory, const std::string& name) {
  const std::string path = format("{}/{}", directory.path, name);
  // It, or what lies below it.
  for (auto held = watched_.held.lower_bound(path);
       held != watched_.held.end() && core::is_at_or_below(held->first, path);) {
    const auto next = std::next(held);
    restore(held->first, held->second);
    held = next;
  }
  const HeldNames::Child child = watched_.names.child(directory.role, name);
  const bool matters =
      directory.is_hooks || child.treatment != Treatment::none || child.role != HeldNames::none;
  if (!matters || watched_.held.contains(path) || watched_.granted.contains(path)) return;
  const sys::Fd fd = open(path);
  if (fd.get() < 0 || is_left(path, fd.get())) return;
  appeared(directory, name, child, fd.get());
}

// The very entry that was there from the start; a later one of that name is none.
bool Keeping::is_left(const std::string& path, int fd) {
  const auto found = watched_.left.find(path);
  if (found == watched_.left.end()) return false;
  const auto now = identify(fd);
  if (now && found->second == std::pair(now->device, now->inode)) return true;
  watched_.left.erase(found);
  return false;
}

void Keeping::appeared(const WatchedDirectory& directory, const std::string& name,
                       const HeldNames::Child& child, int fd) {
  const auto seen = look(fd);
  if (!seen || seen->is_mount) return;
  const std::string path = format("{}/{}", directory.path, name);
  const bool is_directory = seen->type == S_IFDIR;
  const bool counts_here =
      !directory.is_new || directory.role != HeldNames::project || child.check != Check::name;
  if (directory.is_hooks) {
    if (is_hook(name, *seen)) set_aside(directory, name, "");
  } else if (child.treatment == Treatment::hide) {
    if (!counts_here) return;
    cover(path, directory.root);
    watched_.held[path] = {.root = directory.root, .is_hidden = true};
    tell(Kept::Kind::hidden, path);
  } else if (is_directory && child.check != Check::name && child.check != Check::git_config) {
    look_into(path, {.role = child.role, .is_hooks = child.check == Check::hooks});
  } else if (child.treatment == Treatment::hold) {
    if (!directory.writable || !counts_here) return;
    const sys::Fd above = open(directory.path);
    if (above.get() < 0) return;
    const auto why = child.check == Check::git_config && seen->type == S_IFREG
                         ? foreign_setting(above.get(), name)
                         : std::optional<std::string>("");
    if (why) set_aside(directory, name, *why);
  } else if (is_directory) {
    look_into(path, {.role = child.role});
  }
}

// A directory that was made, moved in, or changed its name. It is watched first, then listed.
void Keeping::look_into(const std::string& path, WatchedDirectory what) {
  const sys::Fd fd = open(path);
  if (fd.get() < 0) return;
  const auto above = std::ranges::find_if(
      watched_.directories, [&](const auto& each) { return each.second.path == parent_of(path); });
  if (above == watched_.directories.end()) return;
  what.path = path;
  what.root = above->second.root;
  what.writable = above->second.writable;
  what.is_new = what.role == HeldNames::project;
  if (what.is_new && watched_.directories.size() >= most_directories) {
    if (!std::exchange(is_full_, true)) tell(Kept::Kind::unwatched, path);
    return;
  }
  // By the current directory: /proc/self does not exist here, and the path could lead elsewhere.
  if (::fchdir(fd.get()) != 0) return;
  if (const auto error = watched_.watch(".", what)) {
    errno = *error;
    give_up("watched", path);
  }
  for (const std::string& name : names_in(fd)) look_at(what, name);
}

// ---- mounts -------------------------------------------------------------------------------------

void Keeping::restore(const std::string& path, const HeldEntry& entry) {
  if (!mounts()) return;
  const sys::Fd fd = open(path);
  const auto seen = fd.get() < 0 ? std::nullopt : look(fd.get());
  if (!seen) {
    missing_.try_emplace(path, Clock::now());
    return;
  }
  const auto missing = missing_.extract(path);
  if (seen->is_mount) return;
  if (entry.is_hidden) {
    cover(path, entry.root);
    return tell(Kept::Kind::hidden_again, path);
  }
  // Long gone, it is not replaced but new, and the server may have made it.
  if (!missing.empty() && Clock::now() - missing.mapped() > replaced_within) {
    watched_.held.erase(path);
    return;
  }
  mount_ancestors(path, entry.root);
  pin(path, MOUNT_ATTR_RDONLY);
  tell(Kept::Kind::read_only_again, path);
}

void Keeping::mount_ancestors(const std::string& path, const std::string& root) const {
  for (std::size_t slash = path.find('/', root.size() + 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string ancestor = path.substr(0, slash);
    const sys::Fd fd = open(ancestor);
    const auto seen = fd.get() < 0 ? std::nullopt : look(fd.get());
    if (seen && !seen->is_mount) pin(ancestor, 0);
  }
}

// Looked up now: what was opened before a mount above it lies beneath that.
void Keeping::pin(const std::string& path, std::uint64_t attributes) const {
  const sys::Fd fd = open(path);
  if (fd.get() >= 0) attach(fd.get(), fd.get(), attributes | always, path);
}

void Keeping::cover(const std::string& path, const std::string& root) const {
  mount_ancestors(path, root);
  const sys::Fd fd = open(path);
  const auto seen = fd.get() < 0 ? std::nullopt : look(fd.get());
  if (!seen) return;
  attach(descriptors_.covers[seen->type == S_IFDIR ? 0 : 1], fd.get(),
         MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC | always, path);
}

void Keeping::attach(int source, int target, std::uint64_t attributes,
                     const std::string& path) const {
  if (!mounts()) return;
  const sys::Fd tree(static_cast<int>(
      ::syscall(SYS_open_tree, source, "",
                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE)));
  if (tree.get() < 0) return check_gone(target, path);
  mount_attr wanted{};
  wanted.attr_set = attributes;
  if (::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &wanted,
                sizeof(wanted)) != 0 ||
      ::syscall(SYS_move_mount, tree.get(), "", target, "",
                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    check_gone(target, path);
  }
}

// What went away in the moment of the mount needs none: another event says what came instead.
void Keeping::check_gone(int target, const std::string& path) const {
  const int error = errno;
  struct stat info{};
  if (::fstat(target, &info) == 0 && info.st_nlink == 0) return;
  const sys::Fd now = open(path);
  struct stat other{};
  if (now.get() < 0 || ::fstat(now.get(), &other) != 0 || info.st_ino != other.st_ino ||
      info.st_dev != other.st_dev) {
    return;
  }
  errno = error;
  give_up("mounted again", path);
}

// ---- names --------------------------------------------------------------------------------------

// Through the grant, never out of it or through a link, and over nothing that is there.
void Keeping::set_aside(const WatchedDirectory& directory, const std::string& name,
                        const std::string& why) const {
  const std::string path = format("{}/{}", directory.path, name);
  const sys::Fd grant = open(directory.root);
  if (grant.get() < 0) return;
  const std::string below =
      directory.path == directory.root ? "." : directory.path.substr(directory.root.size() + 1);
  const sys::Fd above = open_at(grant.get(), below, O_PATH | O_DIRECTORY, RESOLVE_BENEATH);
  if (above.get() < 0) return;
  for (int i = 1; i <= most_set_aside; ++i) {
    const std::string now = format("{}.set-aside-{}", name, i);
    if (::renameat2(above.get(), name.c_str(), above.get(), now.c_str(), RENAME_NOREPLACE) == 0) {
      return tell(Kept::Kind::set_aside, path, now, why);
    }
    if (errno == ENOENT) return;  // gone meanwhile
    if (errno != EEXIST) give_up("set aside", path);
  }
  errno = EEXIST;
  give_up("set aside", path);
}

}  // namespace capgate::sandbox
