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

std::expected<std::string, Refusal> read_token(const sys::Fd& file, const std::string& path) {
  const std::string shown = escape_for_terminal(path);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return refuse(format("{} is no regular file", shown), "name another one with --token-file");
  }
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
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
  constexpr int common = O_CLOEXEC | O_NOFOLLOW;
  const sys::Fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | common, 0600));
  if (made.get() >= 0) {
    std::string token = TRY(random_token());
    if (!sys::write_all(made.get(), token + "\n")) {
      (void)::unlink(path.c_str());
      return refuse(format("cannot write {}", escape_for_terminal(path)), "make room there");
    }
    return token;
  }
  const int error = errno;
  // Without waiting: it could be a pipe that nobody writes to.
  const sys::Fd file(error == EEXIST ? ::open(path.c_str(), O_RDONLY | O_NONBLOCK | common) : -1);
  if (file.get() >= 0) return read_token(file, path);
  return refuse(format("cannot open {}: {}", escape_for_terminal(path),
                       std::strerror(error == EEXIST ? errno : error)),
                "name a file of yours with --token-file");
}

}  // namespace capgate::sandbox
