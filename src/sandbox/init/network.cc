// The network of the sandbox: what the orders hold ready-made is sent to the kernel, and the
// sockets that come of it go out to the supervisor. Nothing is decided here.
#include <asm/unistd.h>
#include <linux/filter.h>
#include <linux/netlink.h>

#include "sandbox/init/init.h"

namespace capgate::sandbox::init {
namespace {

constexpr long no_such_family = -97;  // EAFNOSUPPORT
constexpr long no_answer = -71;       // EPROTO
constexpr long family_ipv4 = 2;
constexpr long family_ipv6 = 10;
constexpr long family_netlink = 16;
constexpr long stream = 1;
constexpr long raw_type = 3;
constexpr long close_on_exec = 02000000;
constexpr long nonblocking = 04000;
constexpr long do_not_wait = 0x40;
constexpr long no_signal = 0x4000;

void close(long fd) { call(__NR_close, fd); }

// The errors in the messages of one answer, in their order; `acknowledged` when the last message of
// the request was carried out.
long read_answer(const char* at, long size, bool& acknowledged) {
  while (size >= static_cast<long>(sizeof(nlmsghdr))) {
    const auto* message = reinterpret_cast<const nlmsghdr*>(at);
    const long length = message->nlmsg_len;
    if (message->nlmsg_type != NLMSG_ERROR || length > size ||
        length < static_cast<long>(NLMSG_LENGTH(sizeof(int)))) {
      return no_answer;
    }
    const int error = *reinterpret_cast<const int*>(at + NLMSG_HDRLEN);
    if (error != 0) return error;
    acknowledged = true;
    const long aligned = NLMSG_ALIGN(length);
    at += aligned;
    size -= aligned;
  }
  return 0;
}

// The kernel has carried a message out, and its answer is there, when send() returns.
long exchange(long socket, const orders::NetlinkMessage& message) {
  const long sent =
      call(__NR_sendto, socket, text(message.bytes), message.bytes.size, 0, nullptr, 0);
  if (sent < 0) return sent;
  if (sent != static_cast<long>(message.bytes.size)) return no_answer;
  bool acknowledged = false;
  while (!acknowledged) {
    alignas(nlmsghdr) char answer[8192];
    const long size =
        call(__NR_recvfrom, socket, answer, sizeof(answer), do_not_wait, nullptr, nullptr);
    if (size <= 0) return no_answer;
    if (const long error = read_answer(answer, size, acknowledged); error < 0) return error;
  }
  return 0;
}

long carry_out(const orders::NetlinkMessage& message) {
  const long socket = call(__NR_socket, family_netlink, raw_type | close_on_exec, message.protocol);
  if (socket < 0) return socket;
  const long result = exchange(socket, message);
  close(socket);
  return result;
}

// A filter comes before the address: no packet that it refuses is ever received.
long set_up(long fd, const orders::Socket& socket) {
  const auto* options = items<orders::SocketOption>(socket.options);
  for (std::uint32_t i = 0; i < socket.options.count; ++i) {
    const long set = call(__NR_setsockopt, fd, options[i].level, options[i].name, &options[i].value,
                          sizeof(options[i].value));
    if (set < 0) return set;
  }
  if (socket.filter.count > 0) {
    constexpr long socket_level = 1;
    constexpr long attach_filter = 26;
    const sock_fprog program{.len = static_cast<unsigned short>(socket.filter.count),
                             .filter = const_cast<sock_filter*>(items<sock_filter>(socket.filter))};
    const long set =
        call(__NR_setsockopt, fd, socket_level, attach_filter, &program, sizeof(program));
    if (set < 0) return set;
  }
  const long bound = call(__NR_bind, fd, text(socket.address), socket.address.size);
  if (bound < 0 || socket.backlog == 0) return bound;
  return call(__NR_listen, fd, socket.backlog);
}

// True if IPv6 is there as well.
bool carry_out_messages() {
  bool has_ipv6 = true;
  const auto* messages = items<orders::NetlinkMessage>(header->netlink);
  for (std::uint32_t i = 0; i < header->netlink.count; ++i) {
    const std::uint32_t flags = messages[i].flags;
    if ((flags & orders::with_ipv6) != 0 && !has_ipv6) continue;
    const long result = carry_out(messages[i]);
    // Whatever the reason: without this route no IPv6 packet goes anywhere.
    if (result < 0 && (flags & orders::may_lack) != 0) {
      has_ipv6 = false;
      continue;
    }
    must(Step::network, result, i);
  }
  return has_ipv6;
}

// False if the address family does not exist and need not.
bool make_and_send(const orders::Socket& socket, std::uint32_t index) {
  const std::uint32_t step_index = header->netlink.count + index;
  const long fd =
      call(__NR_socket, socket.domain, socket.type | close_on_exec | nonblocking, socket.protocol);
  if (fd == no_such_family && (socket.flags & orders::may_lack) != 0) return false;
  must(Step::network, fd, step_index);
  must(Step::network, set_up(fd, socket), step_index);
  const orders::Report report{.kind = orders::Report::Kind::socket, .index = index};
  must(Step::network, send_descriptor(orders::control_fd, {&report, sizeof(report)}, fd, 0),
       step_index);
  close(fd);
  return true;
}

long write_value(const char* path, const char* value, std::size_t size) {
  constexpr long write_only = 1;
  const long file = call(__NR_openat, -100, path, write_only | close_on_exec);
  if (file < 0) return file;
  const long result = call(__NR_write, file, value, size);
  close(file);
  return result;
}

}  // namespace

long send_descriptor(int to, Bytes bytes, long descriptor, long flags) {
  struct {
    std::uint64_t size = 16 + sizeof(int);
    int level = 1;  // SOL_SOCKET
    int type = 1;   // SCM_RIGHTS
    int fd = -1;
  } control;
  control.fd = static_cast<int>(descriptor);
  struct {
    const void* base;
    std::uint64_t size;
  } part{bytes.data, bytes.size};
  struct {
    void* name = nullptr;
    std::uint64_t name_size = 0;
    void* parts;
    std::uint64_t part_count = 1;
    void* control;
    std::uint64_t control_size;
    std::uint64_t flags = 0;
  } message{.parts = &part, .control = &control, .control_size = sizeof(control)};
  return call(__NR_sendmsg, to, &message, flags);
}

// Of this network namespace. Sockets hold up to 10 MiB each by default, and a server may have a
// thousand. A /proc that cannot be written is no reason to refuse: the report tells what is held.
void bound_buffers() {
  if (header->bound_buffers == 0) return;
  long result = write_value("/proc/sys/net/ipv4/tcp_rmem", orders::tcp_receive_buffers,
                            sizeof(orders::tcp_receive_buffers) - 1);
  if (result >= 0) {
    result = write_value("/proc/sys/net/ipv4/tcp_wmem", orders::tcp_send_buffers,
                         sizeof(orders::tcp_send_buffers) - 1);
  }
  const orders::Report report{.kind = orders::Report::Kind::buffers,
                              .value = static_cast<std::int32_t>(result < 0 ? -result : 0)};
  must(Step::network, call(__NR_write, orders::control_fd, &report, sizeof(report)));
}

void make_network() {
  begin(Step::network);
  if (header->has_network == 0) return;
  bool has_ipv6 = carry_out_messages();
  const auto* sockets = items<orders::Socket>(header->sockets);
  bool is_made = false;
  for (std::uint32_t i = 0; i < header->sockets.count; ++i) {
    if ((sockets[i].flags & orders::instead) != 0 && is_made) continue;
    if ((sockets[i].flags & orders::with_ipv6) != 0 && !has_ipv6) continue;
    is_made = make_and_send(sockets[i], i);
    has_ipv6 = has_ipv6 && is_made;
  }
  const orders::Report ready{.kind = orders::Report::Kind::network_ready,
                             .value = has_ipv6 ? 1 : 0};
  must(Step::network, call(__NR_write, orders::control_fd, &ready, sizeof(ready)));
}

// One byte names a family; it comes back, with a socket if one could be made. Whoever asks and does
// not listen loses the answer: init waits for nobody.
void answer_inner_request() {
  char wanted = 0;
  const long size =
      call(__NR_recvfrom, orders::inner_fd, &wanted, 1, do_not_wait, nullptr, nullptr);
  if (size != 1 || (wanted != 4 && wanted != 6)) return;
  const long fd = call(__NR_socket, wanted == 4 ? family_ipv4 : family_ipv6,
                       stream | close_on_exec | nonblocking, 0);
  if (fd < 0) {
    call(__NR_sendto, orders::inner_fd, &wanted, 1, do_not_wait | no_signal, nullptr, 0);
    return;
  }
  send_descriptor(orders::inner_fd, {&wanted, 1}, fd, do_not_wait | no_signal);
  close(fd);
}

}  // namespace capgate::sandbox::init
