#include "clients/replace_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/digest.h"
#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "sandbox/host_path.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::clients {
namespace {

using Kind = FileProblem::Kind;

constexpr std::string_view backup_suffix = ".capgate-backup";
constexpr int most_backups = 1000;

std::unexpected<FileProblem> refuse(Kind kind, std::string message, std::string help) {
  return std::unexpected(
      FileProblem{.kind = kind, .message = std::move(message), .help = std::move(help)});
}

std::unexpected<FileProblem> cannot_write(std::string_view path, int error) {
  return refuse(Kind::unwritable,
                format("cannot write {}: {}", escape_for_terminal(path), std::strerror(error)),
                "nothing was changed; see who owns the directory, and whether the disk is full");
}

std::unexpected<FileProblem> changed(const OpenedFile& file) {
  return refuse(
      Kind::changed,
      format("{} was changed meanwhile, and is left as it is now", escape_for_terminal(file.path)),
      "run the command again; end the client first if it writes the file itself");
}

std::string base_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The directory of the target, by which everything is named: it cannot be swapped meanwhile.
std::expected<sys::Fd, FileProblem> open_directory(const OpenedFile& file) {
  const std::string_view parent = sandbox::parent_of(file.target);
  const std::string path(parent.empty() ? "/" : parent);
  sys::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return cannot_write(path, errno);
  return directory;
}

struct Snapshot {
  struct stat info{};
  std::string text;
};

// A regular file at this name now, or an errno. Not waited for: it may be a FIFO by now.
std::expected<Snapshot, int> read_at(int directory, const std::string& name, std::size_t most) {
  const sys::Fd file(
      ::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  Snapshot out;
  if (file.get() < 0 || ::fstat(file.get(), &out.info) != 0) return std::unexpected(errno);
  if (!S_ISREG(out.info.st_mode)) return std::unexpected(EINVAL);
  out.text.resize(most + 1);
  std::size_t size = 0;
  while (size < out.text.size()) {
    const ssize_t got = ::read(file.get(), out.text.data() + size, out.text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  out.text.resize(size);
  return out;
}

bool is_same(const OpenedFile& file, const Snapshot& now) {
  const struct stat& a = file.info;
  const struct stat& b = now.info;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid &&
         file.hash == sha256_hex(now.text);
}

// A new file in a directory; its name is taken back unless it is kept.
class NewFile {
 public:
  NewFile(int directory, std::string name, mode_t mode)
      : directory_(directory),
        name_(std::move(name)),
        file_(::openat(directory, name_.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)),
        error_(file_.get() < 0 ? errno : 0) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile(NewFile&&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (file_.get() >= 0 && !is_kept_) (void)::unlinkat(directory_, name_.c_str(), 0);
  }
  void keep() { is_kept_ = true; }
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] int get() const { return file_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  int directory_;
  std::string name_;
  sys::Fd file_;
  int error_;
  bool is_kept_ = false;
};

std::string random_suffix() {
  std::uint64_t number = 0;
  // Only to keep two names apart: O_EXCL decides.
  if (::getrandom(&number, sizeof(number), 0) < 0) number = static_cast<std::uint64_t>(::getpid());
  return format("{:016x}", number);
}

// The access list and the user's own attributes. Labels of the kernel are given by the directory.
std::expected<void, int> copy_attributes(int from, int to) {
  std::string names(65536, '\0');
  const ssize_t size = ::flistxattr(from, names.data(), names.size());
  if (size < 0) return errno == ENOTSUP ? std::expected<void, int>() : std::unexpected(errno);
  names.resize(static_cast<std::size_t>(size));
  for (const std::string_view each : EachPart(names, '\0')) {
    const std::string name(each);
    if (!name.starts_with("user.") && name != "system.posix_acl_access") continue;
    std::string value(65536, '\0');
    const ssize_t length = ::fgetxattr(from, name.c_str(), value.data(), value.size());
    if (length < 0 ||
        ::fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(length), 0) != 0) {
      return std::unexpected(errno);
    }
  }
  return {};
}

std::expected<void, int> write_synced(int fd, std::string_view text) {
  if (const auto written = sys::write_all(fd, text); !written) {
    return std::unexpected(written.error().err);
  }
  return ::fsync(fd) == 0 ? std::expected<void, int>() : std::unexpected(errno);
}

// Owner before mode: a change of the owner clears set-id bits, and nobody else may read it between.
std::expected<void, int> make_like(int directory, const OpenedFile& file, int fd) {
  struct stat now{};
  if (::fstat(fd, &now) != 0) return std::unexpected(errno);
  const bool has_owner = now.st_uid == file.info.st_uid && now.st_gid == file.info.st_gid;
  if (!has_owner && ::fchown(fd, file.info.st_uid, file.info.st_gid) != 0) {
    return std::unexpected(errno);
  }
  const sys::Fd old(::openat(directory, base_of(file.target).c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (old.get() < 0) return std::unexpected(errno);
  TRY(copy_attributes(old.get(), fd));
  if (::fchmod(fd, file.info.st_mode & 07777) != 0) return std::unexpected(errno);
  return {};
}

std::string backup_name(const std::string& base, int number) {
  return number == 1 ? format("{}{}", base, backup_suffix)
                     : format("{}{}-{}", base, backup_suffix, number);
}

struct Backup {
  std::string name;      // empty: none is wanted
  bool is_ours = false;  // made now: taken back if the replacement fails
};

std::expected<Backup, FileProblem> make_backup(int directory, const OpenedFile& file,
                                               std::string_view text) {
  const std::string base = base_of(file.target);
  for (int number = 1; number <= most_backups; ++number) {
    const std::string name = backup_name(base, number);
    NewFile backup(directory, name, 0600);
    if (backup.error() == EEXIST) {
      const auto there = read_at(directory, name, text.size());
      if (there && there->text == text) return Backup{.name = name};
      continue;
    }
    if (backup.error() != 0) return cannot_write(format("{} beside it", name), backup.error());
    const bool is_owned = ::fchown(backup.get(), file.info.st_uid, file.info.st_gid) == 0;
    const bool is_closed = is_owned && ::fchmod(backup.get(), file.info.st_mode & 0600) == 0;
    if (!is_closed) return cannot_write(name, errno);
    if (const auto written = write_synced(backup.get(), text); !written) {
      return cannot_write(name, written.error());
    }
    backup.keep();
    return Backup{.name = name, .is_ours = true};
  }
  return refuse(Kind::unwritable, format("there are {} backups of {} already", most_backups, base),
                format("remove those that you do not need: {}{}*", base, backup_suffix));
}

// The comparison stands directly before the rename: what changes the file later changes a file
// that has no name any more, as with every editor.
std::expected<void, FileProblem> put_in_place(int directory, const OpenedFile& file,
                                              std::string_view text) {
  const std::string base = base_of(file.target);
  NewFile next(directory, format(".{}.capgate-{}", base, random_suffix()), 0600);
  if (next.error() != 0) return cannot_write(file.target, next.error());
  if (const auto made = make_like(directory, file, next.get()); !made) {
    return refuse(Kind::unwritable,
                  format("the owner and mode of {} cannot be kept: {}",
                         escape_for_terminal(file.path), std::strerror(made.error())),
                  "run the command as the owner of the file");
  }
  if (const auto written = write_synced(next.get(), text); !written) {
    return cannot_write(file.target, written.error());
  }
  const auto now = read_at(directory, base, file.text.size());
  if (!now || !is_same(file, *now)) return changed(file);
  if (::renameat(directory, next.name().c_str(), directory, base.c_str()) != 0) {
    return cannot_write(file.target, errno);
  }
  next.keep();
  // The new file is there; whether its name outlasts a crash right now is the disk's to say.
  (void)::fsync(directory);
  return {};
}

}  // namespace

std::expected<OpenedFile, FileProblem> open_file(const std::string& path, std::size_t most) {
  const auto cannot_read = [&](int error) {
    return refuse(Kind::unreadable,
                  format("cannot read {}: {}", escape_for_terminal(path), std::strerror(error)),
                  error == ENOENT ? "check the name" : "it must be a file that you can read");
  };
  OpenedFile out{.path = path, .target = {}, .text = {}, .hash = {}};
  std::string target(PATH_MAX, '\0');
  if (::realpath(path.c_str(), target.data()) == nullptr) return cannot_read(errno);
  out.target = target.c_str();
  auto now = read_at(AT_FDCWD, out.target, most);
  if (!now) return cannot_read(now.error());
  if (now->text.size() > most) return cannot_read(EFBIG);
  out.info = now->info;
  out.text = std::move(now->text);
  out.hash = sha256_hex(out.text);
  return out;
}

std::expected<void, FileProblem> check_replaceable(const OpenedFile& file) {
  const std::string shown = escape_for_terminal(file.path);
  // Whoever took the right to write away meant it, for root too.
  const bool is_read_only = (file.info.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0 ||
                            ::faccessat(AT_FDCWD, file.target.c_str(), W_OK, AT_EACCESS) != 0;
  if (is_read_only) {
    return refuse(
        Kind::unwritable, format("{} is read-only", shown),
        format("chmod u+w it, if it is yours to change ({})", escape_for_terminal(file.target)));
  }
  if (file.info.st_nlink > 1) {
    return refuse(
        Kind::unwritable,
        format("{} has {} names (hard links), which would part", shown, file.info.st_nlink),
        "make a copy of it under its own name, or use a symbolic link");
  }
  const std::string directory(sandbox::parent_of(file.target));
  const char* place = directory.empty() ? "/" : directory.c_str();
  if (::faccessat(AT_FDCWD, place, W_OK | X_OK, AT_EACCESS) != 0) {
    return refuse(Kind::unwritable,
                  format("the directory of {} cannot be written: {}", shown, std::strerror(errno)),
                  "a file is replaced by a new one beside it; make its directory writable");
  }
  return {};
}

std::expected<Replaced, FileProblem> replace_file(const OpenedFile& file,
                                                  const Replacement& replacement) {
  TRY(check_replaceable(file));
  const sys::Fd directory = TRY(open_directory(file));
  Backup backup;
  if (replacement.backup) backup = TRY(make_backup(directory.get(), file, *replacement.backup));
  if (auto placed = put_in_place(directory.get(), file, replacement.text); !placed) {
    if (backup.is_ours) (void)::unlinkat(directory.get(), backup.name.c_str(), 0);
    return std::unexpected(std::move(placed).error());
  }
  if (backup.name.empty()) return Replaced{};
  return Replaced{.backup = format("{}/{}", sandbox::parent_of(file.target), backup.name)};
}

std::vector<std::string> backups_of(const std::string& target) {
  std::vector<std::string> out;
  for (int number = 1; number <= most_backups; ++number) {
    std::string name = backup_name(target, number);
    if (::faccessat(AT_FDCWD, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) break;
    out.push_back(std::move(name));
  }
  return out;
}

void remove_backups(const OpenedFile& file, std::string_view text) {
  const auto directory = open_directory(file);
  if (!directory) return;
  for (int number = 1; number <= most_backups; ++number) {
    const std::string name = backup_name(base_of(file.target), number);
    const auto there = read_at(directory->get(), name, text.size());
    if (!there && there.error() == ENOENT) return;
    if (there && there->text == text) (void)::unlinkat(directory->get(), name.c_str(), 0);
  }
}

std::expected<void, FileProblem> create_file(const std::string& path, std::string_view text) {
  const std::string directory(sandbox::parent_of(path));
  if (const auto made = sys::make_directories(directory); !made) {
    return cannot_write(made.error().subject, made.error().err);
  }
  const sys::Fd place(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (place.get() < 0) return cannot_write(directory, errno);
  NewFile file(place.get(), base_of(path), 0600);
  if (file.error() != 0) return cannot_write(path, file.error());
  if (const auto written = write_synced(file.get(), text); !written) {
    return cannot_write(path, written.error());
  }
  file.keep();
  return {};
}

}  // namespace capgate::clients
