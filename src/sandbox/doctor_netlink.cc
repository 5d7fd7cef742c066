// One netlink message to the kernel, from a process that may only make async-signal-safe calls.
#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "sandbox/doctor_probes.h"
#include "sys/fd.h"

namespace capgate::sandbox {
namespace {

constexpr int no_answer = EPROTO;

// The first error in one answer; `acknowledged` when the last message of the request was carried
// out.
int read_answer(const char* at, std::size_t size, bool& acknowledged) {
  while (size >= sizeof(nlmsghdr)) {
    nlmsghdr message;
    std::memcpy(&message, at, sizeof(message));
    int error = 0;
    if (message.nlmsg_type != NLMSG_ERROR || message.nlmsg_len > size ||
        message.nlmsg_len < NLMSG_LENGTH(sizeof(error))) {
      return no_answer;
    }
    std::memcpy(&error, at + NLMSG_HDRLEN, sizeof(error));
    if (error != 0) return -error;
    acknowledged = true;
    const std::size_t whole = NLMSG_ALIGN(message.nlmsg_len);
    if (whole >= size) return 0;
    at += whole;
    size -= whole;
  }
  return 0;
}

}  // namespace

// The answer is there when send() returns.
int carry_out(int protocol, std::string_view bytes) {
  const sys::Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (socket.get() < 0) return errno;
  const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), 0);
  if (sent < 0) return errno;
  bool acknowledged = false;
  while (!acknowledged) {
    char answer[8192];
    const ssize_t size = ::recv(socket.get(), answer, sizeof(answer), MSG_DONTWAIT);
    if (size <= 0) return no_answer;
    const int error = read_answer(answer, static_cast<std::size_t>(size), acknowledged);
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace capgate::sandbox
