#include "store/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/format.h"
#include "base/text.h"
#include "sys/file.h"

namespace capgate::store {
namespace {

constexpr const char* store_name = "secrets.json";
constexpr const char* next_name = "secrets.json.new";
constexpr const char* lock_name = "secrets.lock";
constexpr mode_t others = S_IRWXG | S_IRWXO;

std::unexpected<Problem> refuse(const std::string& path, std::string_view why,
                                std::string_view help) {
  return unavailable(format("{}: {}", escape_for_terminal(path), why), std::string(help));
}

std::unexpected<Problem> refuse_call(const std::string& path, int error) {
  return refuse(path, std::strerror(error), "check the directory and its file system");
}

std::optional<Problem> fault_of(const std::string& path, int fd, mode_t type) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return refuse_call(path, errno).error();
  if ((info.st_mode & S_IFMT) != type) {
    return refuse(path, "it is something else than it must be", "move it away").error();
  }
  if (info.st_uid != ::geteuid()) {
    return refuse(path, "it belongs to another user",
                  "set XDG_DATA_HOME to a directory of yours, or give it to yourself")
        .error();
  }
  if ((info.st_mode & others) != 0) {
    return refuse(path, "others can use it",
                  type == S_IFDIR ? "chmod 700 it" : "chmod 600 it, if nobody changed it")
        .error();
  }
  return std::nullopt;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

Outcome<std::string> store_directory() {
  // A relative one is to be ignored, says the specification of these directories.
  if (const std::string data = variable("XDG_DATA_HOME"); data.starts_with('/')) {
    return data + "/capgate";
  }
  if (const std::string home = variable("HOME"); home.starts_with('/')) {
    return home + "/.local/share/capgate";
  }
  return unavailable("there is no place for the store", "set HOME or XDG_DATA_HOME");
}

Outcome<std::optional<StoreDirectory>> StoreDirectory::open(std::string path, Missing missing) {
  if (missing == Missing::is_made) {
    if (const auto made = sys::make_directories(path); !made) {
      return refuse_call(made.error().subject, made.error().err);
    }
  }
  sys::Fd place(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (place.get() < 0) {
    if (errno == ENOENT && missing == Missing::is_none) return std::optional<StoreDirectory>();
    return refuse_call(path, errno);
  }
  if (auto fault = fault_of(path, place.get(), S_IFDIR)) return std::unexpected(*std::move(fault));
  return std::optional(StoreDirectory(std::move(path), std::move(place)));
}

std::string StoreDirectory::path_of(std::string_view file) const {
  return format("{}/{}", path_, file);
}

Outcome<sys::Fd> StoreDirectory::lock() const {
  using std::chrono::steady_clock;
  constexpr std::chrono::seconds longest_wait{20};
  constexpr std::chrono::milliseconds pause{10};
  const std::string path = path_of(lock_name);
  sys::Fd lock(::openat(place_.get(), lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (lock.get() < 0) return refuse_call(path, errno);
  if (auto fault = fault_of(path, lock.get(), S_IFREG)) return std::unexpected(*std::move(fault));
  const auto deadline = steady_clock::now() + longest_wait;
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  while (::fcntl(lock.get(), F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES) return refuse_call(path, errno);
    if (steady_clock::now() > deadline) {
      return refuse(path, "another capgate keeps the store locked", "end it, or wait for it");
    }
    std::this_thread::sleep_for(pause);
  }
  return lock;
}

Outcome<std::optional<StoreFile>> StoreDirectory::read() const {
  const std::string path = path_of(store_name);
  const sys::Fd file(
      ::openat(place_.get(), store_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT) return std::optional<StoreFile>();
    return refuse_call(path, errno);
  }
  if (auto fault = fault_of(path, file.get(), S_IFREG)) return std::unexpected(*std::move(fault));
  std::string text(largest_store + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse_call(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  auto read = read_store(std::move(text));
  if (!read) {
    Problem problem = std::move(read).error();
    problem.message = format("{}: {}", escape_for_terminal(path), problem.message);
    return std::unexpected(std::move(problem));
  }
  return std::optional(*std::move(read));
}

Outcome<void> StoreDirectory::replace(std::string_view text) const {
  const std::string path = path_of(next_name);
  // What a crash left behind: the lock is ours, so nobody writes it now.
  if (::unlinkat(place_.get(), next_name, 0) != 0 && errno != ENOENT) {
    return refuse_call(path, errno);
  }
  const sys::Fd next(::openat(place_.get(), next_name,
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (next.get() < 0) return refuse_call(path, errno);
  // The bytes are on the disk before the name is, else a crash could leave an empty store.
  const auto written = sys::write_all(next.get(), text);
  const bool is_kept = written && ::fchmod(next.get(), 0600) == 0 && ::fsync(next.get()) == 0 &&
                       ::renameat(place_.get(), next_name, place_.get(), store_name) == 0;
  if (!is_kept) {
    const int error = written ? errno : written.error().err;
    (void)::unlinkat(place_.get(), next_name, 0);
    return refuse_call(path, error);
  }
  if (::fsync(place_.get()) != 0) return refuse_call(path_, errno);
  return {};
}

}  // namespace capgate::store
