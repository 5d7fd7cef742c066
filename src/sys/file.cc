#include "sys/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace capgate::sys {
namespace {

Sys<std::string> read_all(int fd, const std::string& subject, std::size_t most) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return std::unexpected(SysError{"fstat", errno, subject});
  if (S_ISDIR(info.st_mode)) return std::unexpected(SysError{"read", EISDIR, subject});

  // A regular file tells its size; one byte more than that sees the end of it. The kernel's own
  // files say 0, and some of those (numbers below /proc/sys) give nothing more after one read.
  std::string text;
  std::size_t size = 0;
  const bool tells_size = S_ISREG(info.st_mode) && info.st_size > 0;
  std::size_t room = tells_size ? static_cast<std::size_t>(info.st_size) + 1 : 65536;
  while (size <= most) {
    if (size == text.size()) {
      // Not resize(): it would write every page once more, only to have it overwritten.
      text.resize_and_overwrite(size + std::min(room, most + 1 - size),
                                [](char*, std::size_t whole) { return whole; });
      room = std::max<std::size_t>(size, 65536);
    }
    const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(SysError{"read", errno, subject});
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace

Sys<std::string> read_file(const std::string& path, std::size_t most) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input", most);
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return std::unexpected(SysError{"open", errno, path});
  return read_all(file.get(), path, most);
}

Sys<void> write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(SysError{"write", errno, ""});
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

namespace {

// A link that is not root's could have been put there by anyone who can write its directory.
bool is_foreign_link(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode) && info.st_uid != 0;
}

Sys<void> make_one_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  const int error = errno == EEXIST && is_foreign_link(path) ? ELOOP : errno;
  if (error == EEXIST) return {};
  return std::unexpected(SysError{"mkdir", error, path});
}

}  // namespace

Sys<std::string> make_directories(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    if (auto made = make_one_directory(path.substr(0, slash)); !made) {
      return std::unexpected(std::move(made).error());
    }
  }
  if (auto made = make_one_directory(path); !made) return std::unexpected(std::move(made).error());
  return path;
}

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

}  // namespace capgate::sys
