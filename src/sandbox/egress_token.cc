#include "sandbox/egress_token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

constexpr std::size_t shortest = 16;
constexpr std::size_t longest = 255;  // SOCKS5 has one byte for its length

std::unexpected<Refusal> refuse(std::string message, std::string help) {
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}

// What stands in a URL, a header and a file without being written in another way.
bool is_token(std::string_view text) {
  return text.size() >= shortest && text.size() <= longest && std::ranges::all_of(text, [](char c) {
           return is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '~';
         });
}

std::expected<std::string, Refusal> random_token() {
  std::array<std::uint8_t, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return refuse("no random numbers", "see capgate doctor");
  }
  std::string out;
  for (const std::uint8_t byte : bytes) out += format("{:02x}", byte);
  return out;
}

// One's own alone; or root's, who may let one's group read it, as in a mounted secret of a cluster.
bool is_private(const struct stat& info) {
  const bool is_own = info.st_uid == ::geteuid() && (info.st_mode & 077) == 0;
  const bool is_roots = info.st_uid == 0 && ::geteuid() != 0 && (info.st_mode & 037) == 0;
  return is_own || is_roots;
}

std::expected<std::string, Refusal> read_token(const sys::Fd& file, const std::string& path) {
  const std::string shown = escape_for_terminal(path);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return refuse(format("{} is no regular file", shown), "name another one with --token-file");
  }
  if (!is_private(info)) {
    return refuse(format("others than you can use {}", shown),
                  "chmod 600 it, or name a file that does not exist yet: it is made");
  }
  std::string text(longest + 2, '\0');
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const std::string_view token = trim(text);
  if (is_token(token)) return std::string(token);
  return refuse(format("{} holds no token", shown),
                "one line of 16 to 255 letters, digits and -_.~; or remove it, and one is made");
}

}  // namespace

std::expected<std::string, Refusal> open_token(const std::string& path) {
  // Without waiting: it could be a pipe that nobody writes to. A link may lead to it, since what is
  // asked is whose the file is.
  const sys::Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() >= 0) return read_token(file, path);
  const bool is_absent = errno == ENOENT;
  const sys::Fd made(is_absent ? ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                               : -1);
  if (made.get() < 0) {
    return refuse(format("cannot open {}: {}", escape_for_terminal(path), std::strerror(errno)),
                  "name a file of yours with --token-file");
  }
  std::string token = TRY(random_token());
  if (sys::write_all(made.get(), token + "\n")) return token;
  (void)::unlink(path.c_str());
  return refuse(format("cannot write {}", escape_for_terminal(path)), "make room there");
}

}  // namespace capgate::sandbox
