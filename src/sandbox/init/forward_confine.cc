// What is left to the forwarder once its command runs: the calls of its loop. It reads bytes that a
// hostile command chose, and its own way out is one Unix socket: it can make no other socket, start
// nothing, open no file and signal nothing but its command.
#include <linux/mman.h>

#include "sandbox/init/forward.h"
#include "sandbox/init/forward_filter.h"

namespace capgate::sandbox::init {
namespace {

constexpr std::uint32_t all_bits = ~0U;
constexpr std::uint32_t allowed = SECCOMP_RET_ALLOW;

constexpr CallAnswer loop_calls[] = {
    {.call = __NR_read, .answer = allowed},
    {.call = __NR_sendto, .answer = allowed},
    {.call = __NR_epoll_pwait, .answer = allowed},
    {.call = __NR_epoll_ctl, .answer = allowed},
    {.call = __NR_accept4, .answer = allowed},
    {.call = __NR_connect, .answer = allowed},
    {.call = __NR_shutdown, .answer = allowed},
    {.call = __NR_setsockopt, .answer = allowed},
    {.call = __NR_close, .answer = allowed},
    {.call = __NR_wait4, .answer = allowed},
    {.call = __NR_munmap, .answer = allowed},
    {.call = __NR_exit_group, .answer = allowed},
    {.call = __NR_restart_syscall, .answer = allowed},
    // Buffers, which never become code. mprotect is not in this list.
    {.call = __NR_mmap,
     .argument = 2,
     .mask = all_bits,
     .value = PROT_READ | PROT_WRITE,
     .answer = allowed},
    // The broker's family: neither the network's nor the kernel's.
    {.call = __NR_socket, .mask = all_bits, .value = 1, .answer = allowed},
};

}  // namespace

long confine_forwarder(long command) {
  Filter filter;
  for (const CallAnswer& rule : loop_calls) filter.answer(rule);
  filter.answer({.call = __NR_kill,
                 .mask = all_bits,
                 .value = static_cast<std::uint32_t>(command),
                 .answer = allowed});
  return filter.install(not_permitted_answer);
}

}  // namespace capgate::sandbox::init
