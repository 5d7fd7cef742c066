#include "sandbox/stdio.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "base/format.h"
#include "base/ranges.h"
#include "sys/file.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::sandbox {
namespace {

constexpr std::string_view names[] = {"standard input", "standard output", "standard error"};
constexpr std::size_t largest_request = 1U << 20U;
constexpr std::chrono::seconds patience{2};
// Outside of what JSON-RPC and MCP reserve.
constexpr std::string_view error_code = "-31125";

// Connected, a stream, and without a name: such as socketpair makes.
bool is_unnamed_stream(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  sockaddr_un address{};
  socklen_t address_size = sizeof(address);
  sockaddr_un peer{};
  socklen_t peer_size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
         ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &address_size) == 0 &&
         address.sun_family == AF_UNIX && address_size == sizeof(sa_family_t) &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0;
}

bool is_harmless_device(int fd, const struct stat& info) {
  if (!S_ISCHR(info.st_mode)) return false;
  if (::isatty(fd) == 1) return true;
  constexpr unsigned memory_devices = 1;
  constexpr unsigned harmless[] = {3, 5, 7, 8, 9};  // null, zero, full, random, urandom
  return major(info.st_rdev) == memory_devices && contains(harmless, minor(info.st_rdev));
}

std::string error_answer(text::Value id, const Refusal& refusal) {
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.begin_object().key("jsonrpc").string("2.0").key("id");
  if (id.is(text::Kind::string)) {
    json.string(id.text());
  } else {
    json.verbatim(id.text());
  }
  json.key("error")
      .begin_object()
      .key("code")
      .verbatim(error_code)
      .key("message")
      .string(format("capgate refused to start the server: {}", refusal.message));
  json.key("data").begin_object().key("remedy").string(refusal.help).end_object();
  json.end_object().end_object();
  return std::move(json).take();
}

}  // namespace

bool may_pass(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return false;
  if (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode)) return true;
  if (S_ISSOCK(info.st_mode)) return is_unnamed_stream(fd);
  return is_harmless_device(fd, info);
}

std::string answer_to(std::string line, const Refusal& refusal) {
  const auto document = text::parse_json(std::move(line));
  if (!document || !document->root().is(text::Kind::object)) return {};
  const text::Value request = document->root();
  const auto id = request.find("id");
  if (!id || !request.find("method")) return {};
  if (id->is(text::Kind::string) || id->is(text::Kind::number)) {
    return error_answer(*id, refusal);
  }
  return {};
}

std::expected<void, Refusal> check_stdio() {
  for (int fd = 0; fd < 3; ++fd) {
    struct stat info{};
    if (::fstat(fd, &info) != 0) {
      return std::unexpected(Refusal{.message = format("{} is closed", names[fd]),
                                     .help = "redirect it, for example from /dev/null"});
    }
    if (!may_pass(fd)) {
      return std::unexpected(Refusal{
          .message = format("{} is not a pipe, file, terminal or unnamed socket", names[fd]),
          .help = "the server would inherit it; use a pipe"});
    }
  }
  return {};
}

namespace {

// False if nobody reads the answers any more.
bool answer_line(std::string line, const Refusal& refusal) {
  const std::string answer = answer_to(std::move(line), refusal);
  return answer.empty() || sys::write_all(STDOUT_FILENO, answer + "\n").has_value();
}

}  // namespace

void answer_requests(const Refusal& refusal) {
  struct stat info{};
  if (::fstat(STDIN_FILENO, &info) != 0 || (!S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode))) {
    return;
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  std::string buffer;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd poll{STDIN_FILENO, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&poll, 1, static_cast<int>(left.count())) <= 0) return;
    char piece[4096];
    const ssize_t size = ::read(STDIN_FILENO, piece, sizeof(piece));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      answer_line(std::move(buffer), refusal);
      return;
    }
    buffer.append(piece, static_cast<std::size_t>(size));
    for (std::size_t line = buffer.find('\n'); line != std::string::npos;
         line = buffer.find('\n')) {
      if (!answer_line(buffer.substr(0, line), refusal)) return;
      buffer.erase(0, line + 1);
    }
    if (buffer.size() > largest_request) return;
  }
}

}  // namespace capgate::sandbox
