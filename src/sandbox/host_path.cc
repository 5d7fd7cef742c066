#include "sandbox/host_path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "base/text.h"

namespace capgate::sandbox {
namespace {

constexpr int most_links = 40;

std::unexpected<Refusal> cannot_open(std::string_view path, int error) {
  return std::unexpected(Refusal{
      .message = format("cannot open {}: {}", escape_for_terminal(path), std::strerror(error)),
      .help = error == ENOENT ? "create it, or remove the capability that grants it"
                              : "the sandbox can only be given what its caller can reach"});
}

int open_without_links(const std::string& path, unsigned flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how)));
}

// Component by component, for the few paths that have a link in them.
class Walker {
 public:
  explicit Walker(const std::string& path) : path_(path), rest_(path.substr(1)) {}

  std::expected<HostPath, Refusal> walk() {
    sys::Fd at(::open("/", O_PATH | O_CLOEXEC | O_DIRECTORY));
    while (!rest_.empty()) {
      const std::string name = next_component();
      if (name.empty() || name == ".") continue;
      const auto identity = identify_at(at.get(), name);
      if (!identity) return cannot_open(path_, identity.error());
      if (identity->type == S_IFLNK) {
        if (auto followed = follow(at, name, *identity); !followed) {
          return std::unexpected(std::move(followed).error());
        }
        at = sys::Fd(::open("/", O_PATH | O_CLOEXEC | O_DIRECTORY));
        out_.resolved.clear();
        continue;
      }
      sys::Fd next(::openat(at.get(), name.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
      if (next.get() < 0) return cannot_open(path_, errno);
      at = std::move(next);
      out_.resolved += "/" + name;
    }
    const auto identity = identify(at.get());
    if (!identity) return cannot_open(path_, identity.error());
    out_.identity = *identity;
    out_.fd = std::move(at);
    return std::move(out_);
  }

 private:
  std::string next_component() {
    const std::size_t slash = rest_.find('/');
    std::string name = rest_.substr(0, slash);
    rest_ = slash == std::string::npos ? "" : rest_.substr(slash + 1);
    return name;
  }

  // Starts again from the root with what the link holds in front of the rest.
  std::expected<void, Refusal> follow(const sys::Fd& at, const std::string& name,
                                      const Identity& link) {
    const std::string place = out_.resolved + "/" + name;
    const std::string target = read_link(at.get(), name);
    const bool is_last = rest_.empty();
    if (is_last || link.uid != 0 || target.empty() || ++links_ > most_links) {
      return std::unexpected(Refusal{
          .message = format("{} leads through the symbolic link {}", escape_for_terminal(path_),
                            escape_for_terminal(place)),
          .help = format("grant what it stands for: {}", escape_for_terminal(real_path(path_)))});
    }
    out_.links.emplace_back(place, target);
    // Every directory before "." and ".." was walked and is no link.
    const std::string base = target.starts_with('/') ? "" : out_.resolved;
    rest_ = plain_path(base + "/" + target) + "/" + rest_;
    rest_.erase(0, 1);
    return {};
  }

  const std::string& path_;
  std::string rest_;
  HostPath out_;
  int links_ = 0;
};

}  // namespace

std::string read_link(int directory, const std::string& name) {
  std::string text(4096, '\0');
  const ssize_t size = ::readlinkat(directory, name.c_str(), text.data(), text.size());
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return text;
}

std::string real_path(const std::string& path) {
  std::string out(PATH_MAX, '\0');
  if (::realpath(path.c_str(), out.data()) == nullptr) return path;
  out.resize(std::strlen(out.c_str()));
  return out;
}

std::string plain_path(std::string_view path) {
  std::string out;
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
    } else {
      out += '/';
      out += part;
    }
  }
  return out.empty() ? "/" : out;
}

std::expected<Identity, int> identify_at(int directory, const std::string& name) {
  struct statx info{};
  constexpr unsigned wanted = STATX_TYPE | STATX_INO | STATX_UID | STATX_GID;
  if (::statx(directory, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, wanted, &info) != 0) {
    return std::unexpected(errno);
  }
  return Identity{.device = (std::uint64_t{info.stx_dev_major} << 32U) | info.stx_dev_minor,
                  .inode = info.stx_ino,
                  .type = info.stx_mode & std::uint32_t{S_IFMT},
                  .uid = info.stx_uid,
                  .gid = info.stx_gid};
}

std::expected<Identity, int> identify(int fd) { return identify_at(fd, ""); }

std::expected<Identity, int> identify(const std::string& path) {
  return identify_at(AT_FDCWD, path);
}

std::expected<HostPath, Refusal> open_to_list(const std::string& path) {
  sys::Fd fd(open_without_links(path, O_RDONLY | O_DIRECTORY));
  if (fd.get() < 0) return open_host_path(path);
  const auto identity = identify(fd.get());
  if (!identity) return cannot_open(path, identity.error());
  return HostPath{.fd = std::move(fd), .identity = *identity, .resolved = path, .links = {}};
}

std::expected<HostPath, Refusal> open_host_path(const std::string& path) {
  sys::Fd fd(open_without_links(path, O_PATH));
  if (fd.get() < 0 && errno != ELOOP) return cannot_open(path, errno);
  if (fd.get() < 0) return Walker(path).walk();
  const auto identity = identify(fd.get());
  if (!identity) return cannot_open(path, identity.error());
  if (identity->type == S_IFLNK) return Walker(path).walk();
  return HostPath{.fd = std::move(fd), .identity = *identity, .resolved = path, .links = {}};
}

}  // namespace capgate::sandbox
