#include "clients/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>

#include "base/digest.h"
#include "base/format.h"
#include "base/text.h"
#include "sys/fd.h"

namespace capgate::clients {
namespace {

constexpr std::size_t most_entries = 1'000'000;
constexpr std::size_t deepest = 100;
constexpr std::uint64_t largest_file = std::uint64_t{1} << 30U;

// The kernel's answer to whether a path stays below a directory, whatever links are on its way.
// While anybody renames anything it may not know about a "..", and says EAGAIN.
int open_beneath(int directory, const std::string& path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  constexpr int most_tries = 10000;
  long opened = -1;
  for (int tries = 0; tries < most_tries; ++tries) {
    opened = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how));
    if (opened >= 0 || errno != EAGAIN) break;
  }
  return static_cast<int>(opened);
}

sys::Fd open_directory(const std::string& path) {
  return sys::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::unexpected<StoreProblem> failed(const std::string& path, int error) {
  return refuse(format("{}: {}", escape_for_terminal(path), std::strerror(error)),
                "check the directory and its file system");
}

Stored<std::vector<std::string>> list(int directory, const std::string& path) {
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = copy < 0 ? nullptr : ::fdopendir(copy);
  if (listing == nullptr) {
    const int error = errno;
    if (copy >= 0) ::close(copy);
    return failed(path, error);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  const int error = errno;
  ::closedir(listing);
  if (error != 0) return failed(path, error);
  std::ranges::sort(names);
  return names;
}

struct Entry {
  std::string path;  // below the tree
  std::string name;
  struct stat info{};
  int directory = -1;  // that it lies in
};

using Visit = std::function<Stored<void>(const Entry& entry)>;

// Every entry below a directory, sorted by name, a directory before what it holds.
class Walk {
 public:
  Walk(std::string root, Visit visit) : root_(std::move(root)), visit_(std::move(visit)) {}

  Stored<void> run() {
    const sys::Fd top = open_directory(root_);
    if (top.get() < 0) return failed(root_, errno);
    return walk(top.get(), "", 0);
  }

 private:
  Stored<void> walk(int directory, const std::string& above, std::size_t depth) {
    if (depth > deepest) return refuse(format("{} is too deep", escape_for_terminal(root_)), "");
    auto names = list(directory, above);
    if (!names) return std::unexpected(std::move(names).error());
    for (std::string& name : *names) {
      if (++entries_ > most_entries) {
        return refuse(format("{} has too many files", escape_for_terminal(root_)), "");
      }
      Entry entry{.path = above.empty() ? name : format("{}/{}", above, name),
                  .name = std::move(name),
                  .directory = directory};
      if (::fstatat(directory, entry.name.c_str(), &entry.info, AT_SYMLINK_NOFOLLOW) != 0) {
        return failed(entry.path, errno);
      }
      if (auto done = visit_(entry); !done) return done;
      if (!S_ISDIR(entry.info.st_mode)) continue;
      const sys::Fd inner(
          ::openat(directory, entry.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (inner.get() < 0) return failed(entry.path, errno);
      if (auto done = walk(inner.get(), entry.path, depth + 1); !done) return done;
    }
    return {};
  }

  std::string root_;
  Visit visit_;
  std::size_t entries_ = 0;
};

Stored<std::string> read_open_file(int file, const std::string& path, std::uint64_t most) {
  std::string out;
  std::string part(std::size_t{1} << 16U, '\0');
  for (;;) {
    const ssize_t size = ::read(file, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failed(path, errno);
    if (size == 0) return out;
    out.append(part, 0, static_cast<std::size_t>(size));
    if (out.size() > most) {
      return refuse(format("{} is larger than {} bytes", escape_for_terminal(path), most), "");
    }
  }
}

Stored<std::string> link_target(const Entry& entry) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size =
      ::readlinkat(entry.directory, entry.name.c_str(), target.data(), target.size());
  if (size < 0) return failed(entry.path, errno);
  target.resize(static_cast<std::size_t>(size));
  return target;
}

Stored<std::string> hash_of_file(const Entry& entry) {
  const sys::Fd file(::openat(entry.directory, entry.name.c_str(),
                              O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return failed(entry.path, errno);
  auto text = read_open_file(file.get(), entry.path, largest_file);
  if (!text) return std::unexpected(std::move(text).error());
  return sha256_hex(*text);
}

// Ended by what no name can hold, so that no name can pass for another entry.
std::string line(std::string_view type, unsigned mode, std::string_view hash, const Entry& entry) {
  std::string out = format("{} {:o} {} {}", type, mode, hash, entry.path);
  out.push_back('\0');
  return out;
}

// A line for each entry: its type, its mode, the hash of its bytes or of its target, its path.
Stored<std::string> describe(const Entry& entry) {
  const unsigned mode = entry.info.st_mode & 07777U;
  if (S_ISDIR(entry.info.st_mode)) return line("d", mode, "", entry);
  if (S_ISLNK(entry.info.st_mode)) {
    auto target = link_target(entry);
    if (!target) return target;
    return line("l", 0, sha256_hex(*target), entry);
  }
  if (!S_ISREG(entry.info.st_mode)) return line("?", mode, "", entry);
  auto hash = hash_of_file(entry);
  if (!hash) return hash;
  return line("f", mode, *hash, entry);
}

std::unexpected<StoreProblem> unfit(const Entry& entry, std::string_view why) {
  return refuse(format("the package has {}, {}", quoted(entry.path), why),
                "do not use this package; tell whoever publishes it");
}

Stored<void> settle(int root, const Entry& entry) {
  const mode_t mode = entry.info.st_mode;
  if (std::ranges::any_of(entry.name, is_control))
    return unfit(entry, "a name that cannot be shown");
  if (S_ISLNK(mode)) {
    // A link that leads nowhere stays one: nothing is ever made in the tree again.
    const sys::Fd opened(open_beneath(root, entry.path, O_PATH));
    if (opened.get() >= 0 || errno == ENOENT || errno == ENOTDIR) return {};
    if (errno == EAGAIN) return failed(entry.path, errno);
    return unfit(entry, "a link that leads out of it");
  }
  if (!S_ISREG(mode) && !S_ISDIR(mode)) return unfit(entry, "which is neither file nor directory");
  if ((mode & (S_ISUID | S_ISGID)) != 0 && S_ISREG(mode)) {
    return unfit(entry, "which would run as its owner");
  }
  const mode_t wanted = S_ISDIR(mode) || (mode & S_IXUSR) != 0 ? 0700 : 0600;
  if ((mode & 07777) == wanted) return {};
  if (::fchmodat(entry.directory, entry.name.c_str(), wanted, 0) != 0) {
    return failed(entry.path, errno);
  }
  return {};
}

// False where it is a directory, which then has the bits that it takes to empty and to move it.
std::expected<bool, int> remove_file(int directory, const std::string& name) {
  if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR && errno != EPERM) return std::unexpected(errno);
  (void)::fchmodat(directory, name.c_str(), 0700, AT_SYMLINK_NOFOLLOW);
  return false;
}

// Takes a tree away level by level, with two directories open at most: a package may nest deeper
// than this process may have files open.
class Removal {
 public:
  explicit Removal(const std::string& directory)
      : path_(directory), top_(open_directory(directory)) {}

  [[nodiscard]] bool run() {
    if (top_.get() < 0) return false;
    for (;;) {
      const auto names = list(top_.get(), path_);
      if (!names) return false;
      if (names->empty()) return ::rmdir(path_.c_str()) == 0;
      for (const std::string& name : *names) {
        if (!remove(name)) return false;
      }
    }
  }

 private:
  // A directory gives its own ones to the top.
  bool remove(const std::string& name) {
    const auto removed = remove_file(top_.get(), name);
    if (!removed || *removed) return removed.has_value();
    const sys::Fd inner(
        ::openat(top_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (inner.get() < 0) return false;
    const auto names = list(inner.get(), path_);
    if (!names) return false;
    for (const std::string& below : *names) {
      const auto gone = remove_file(inner.get(), below);
      if (!gone || (!*gone && !move_up(inner.get(), below))) return false;
    }
    return ::unlinkat(top_.get(), name.c_str(), AT_REMOVEDIR) == 0;
  }

  bool move_up(int from, const std::string& name) {
    for (;;) {
      const std::string to = format("removed-{}", moved_++);
      if (::renameat(from, name.c_str(), top_.get(), to.c_str()) == 0) return true;
      const bool is_taken = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR;
      if (!is_taken) return false;
    }
  }

  std::string path_;
  sys::Fd top_;
  std::size_t moved_ = 0;
};

// "./dist/../index.js" is "index.js"; nothing if it starts above itself or is absolute.
std::string plain_below(std::string_view path) {
  std::vector<std::string> parts;
  if (path.starts_with('/') || path.contains('\0')) return "";
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.emplace_back(part);
    } else if (parts.empty()) {
      return "";
    } else {
      parts.pop_back();
    }
  }
  return join(parts, "/");
}

}  // namespace

Stored<void> settle_tree(const std::string& directory) {
  const sys::Fd root = open_directory(directory);
  if (root.get() < 0) return failed(directory, errno);
  if (::fchmod(root.get(), 0700) != 0) return failed(directory, errno);
  return Walk(directory, [&](const Entry& entry) { return settle(root.get(), entry); }).run();
}

Stored<std::string> hash_tree(const std::string& directory) {
  std::string lines;
  const auto add = [&](const Entry& entry) -> Stored<void> {
    auto described = describe(entry);
    if (!described) return std::unexpected(std::move(described).error());
    lines += *described;
    return {};
  };
  if (auto done = Walk(directory, add).run(); !done) {
    return std::unexpected(std::move(done).error());
  }
  return "sha256:" + sha256_hex(lines);
}

Stored<std::string> mark_tree(const std::string& directory) {
  std::string lines;
  timespec now{};
  if (::clock_gettime(CLOCK_REALTIME, &now) != 0) return failed(directory, errno);
  constexpr time_t settled = 2;  // seconds: more than any clock of a file system is coarse
  bool is_settled = true;
  const auto add = [&](const std::string& path, const struct stat& info) {
    lines += format("{} {} {} {:o} {}.{} {}.{} {}", std::uint64_t{info.st_dev},
                    std::uint64_t{info.st_ino}, info.st_size, std::uint32_t{info.st_mode},
                    info.st_ctim.tv_sec, info.st_ctim.tv_nsec, info.st_mtim.tv_sec,
                    info.st_mtim.tv_nsec, path);
    lines.push_back('\0');
    if (info.st_ctim.tv_sec + settled >= now.tv_sec) is_settled = false;
  };
  struct stat top{};
  if (::lstat(directory.c_str(), &top) != 0) return failed(directory, errno);
  add("", top);
  const auto visit = [&](const Entry& entry) -> Stored<void> {
    add(entry.path, entry.info);
    return {};
  };
  if (auto done = Walk(directory, visit).run(); !done) {
    return std::unexpected(std::move(done).error());
  }
  return is_settled ? "sha256:" + sha256_hex(lines) : std::string();
}

std::string file_inside(const std::string& directory, std::string_view path) {
  const std::string plain = plain_below(path);
  if (plain.empty()) return "";
  const sys::Fd root = open_directory(directory);
  if (root.get() < 0) return "";
  const sys::Fd file(open_beneath(root.get(), plain, O_PATH));
  struct stat info{};
  const bool is_file = file.get() >= 0 && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  return is_file ? plain : "";
}

Stored<std::string> read_inside(const std::string& directory, std::string_view path,
                                std::size_t most) {
  const std::string shown = format("{}/{}", directory, path);
  const sys::Fd root = open_directory(directory);
  if (root.get() < 0) return failed(directory, errno);
  const sys::Fd file(open_beneath(root.get(), plain_below(path), O_RDONLY | O_NONBLOCK));
  if (file.get() < 0) return failed(shown, errno);
  return read_open_file(file.get(), shown, most);
}

Stored<std::string> read_start(const std::string& directory, std::string_view path) {
  const std::string shown = format("{}/{}", directory, path);
  const sys::Fd root = open_directory(directory);
  if (root.get() < 0) return failed(directory, errno);
  const sys::Fd file(open_beneath(root.get(), plain_below(path), O_RDONLY | O_NONBLOCK));
  if (file.get() < 0) return failed(shown, errno);
  std::string start(4096, '\0');
  const ssize_t size = ::pread(file.get(), start.data(), start.size(), 0);
  if (size < 0) return failed(shown, errno);
  start.resize(static_cast<std::size_t>(size));
  return start;
}

std::vector<std::string> names_inside(const std::string& directory, std::string_view path) {
  const sys::Fd root = open_directory(directory);
  if (root.get() < 0) return {};
  const std::string plain = plain_below(path);
  const sys::Fd inner(
      open_beneath(root.get(), plain.empty() ? "." : plain, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (inner.get() < 0) return {};
  return list(inner.get(), directory).value_or(std::vector<std::string>());
}

bool remove_tree(const std::string& directory) {
  const auto removed = remove_file(AT_FDCWD, directory);
  return removed && (*removed || Removal(directory).run());
}

}  // namespace capgate::clients
