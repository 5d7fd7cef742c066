#include "sandbox/init/init.h"

#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>

#include "sandbox/init/forward.h"

namespace capgate::sandbox::init {

const Header* header = nullptr;
volatile std::uint32_t* init_is_ready = nullptr;

void fail(Step step, long error, std::uint32_t index) {
  const orders::Report report{.kind = orders::Report::Kind::failed,
                              .step = step,
                              .value = static_cast<std::int32_t>(error),
                              .index = index};
  call(__NR_write, orders::control_fd, &report, sizeof(report));
  for (;;) call(__NR_exit_group, 125);
}

void begin(Step step) {
  constexpr long io_error = 5;
  if (header->fail_step == static_cast<std::uint32_t>(step)) fail(step, io_error);
}

long fork() {
#if defined(__x86_64__)
  return call(__NR_fork);
#else
  return call(__NR_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

namespace {

constexpr long invalid = -22;
constexpr long interrupted = -4;
constexpr long again = -11;

void read_orders() {
  struct statx info{};
  constexpr long at_empty_path = 0x1000;
  must(Step::read_orders,
       call(__NR_statx, orders::orders_fd, "", at_empty_path, STATX_SIZE, &info));
  const long address = must(Step::read_orders, call(__NR_mmap, 0, info.stx_size, PROT_READ,
                                                    MAP_PRIVATE, orders::orders_fd, 0));
  header = reinterpret_cast<const Header*>(address);
  if (info.stx_size < sizeof(Header) || header->magic != orders::magic ||
      header->size != info.stx_size) {
    fail(Step::read_orders, -invalid);
  }
  begin(Step::read_orders);
}

// What the caller had set up for itself must not reach the server: ignored and blocked signals, the
// personality, the umask, the controlling terminal, core dumps.
void reset() {
  begin(Step::reset);
  const struct {
    void* handler = nullptr;  // SIG_DFL
    unsigned long flags = 0;
    void* restorer = nullptr;
    std::uint64_t mask = 0;
  } by_default;
  for (int signal = 1; signal <= 64; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    must(Step::reset,
         call(__NR_rt_sigaction, signal, &by_default, nullptr, sizeof(by_default.mask)));
  }
  const std::uint64_t none = 0;
  must(Step::reset, call(__NR_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof(none)));
  must(Step::reset, call(__NR_personality, 0));
  call(__NR_umask, 0);
  must(Step::reset, call(__NR_setsid));
  // 1, not 0: the kernel ignores 0 where cores go to a program. Less than 1 cannot be raised.
  std::uint64_t core[2] = {};
  must(Step::reset, call(__NR_prlimit64, 0, RLIMIT_CORE, nullptr, core));
  core[0] = core[1] = core[1] < 1 ? core[1] : 1;
  must(Step::reset, call(__NR_prlimit64, 0, RLIMIT_CORE, core, nullptr));
}

void raise_loopback() {
  begin(Step::loopback);
  constexpr long inet = 2;
  constexpr long datagram = 2;
  const long socket = must(Step::loopback, call(__NR_socket, inet, datagram, 0));
  // struct ifreq; the kernel's header for it needs the library's.
  constexpr short up_and_running = 0x41;
  const struct {
    char name[16] = "lo";
    short flags = up_and_running;
    char unused[22] = {};
  } request;
  static_assert(sizeof(request) == 40);
  constexpr long set_interface_flags = 0x8914;
  must(Step::loopback, call(__NR_ioctl, socket, set_interface_flags, &request));
  call(__NR_close, socket);
}

void set_host_name() {
  begin(Step::host_name);
  must(Step::host_name, call(__NR_sethostname, text(header->host_name), header->host_name.size));
  must(Step::host_name, call(__NR_setdomainname, "", 0));
}

// Nothing of the server's is left in init: neither its descriptors nor its environment, which the
// orders hold. Nor can the server look into init.
void drop_everything() {
  begin(Step::init_drop);
  const int first_unwanted = header->inner_sockets != 0 ? orders::first_tree_fd : orders::inner_fd;
  const std::uint32_t size = header->size;
  const std::uint32_t uid = header->uid;
  const std::uint32_t gid = header->gid;
  must(Step::init_drop, call(__NR_munmap, header, size));
  constexpr long last = ~0U;
  must(Step::init_drop, call(__NR_close_range, 0, orders::orders_fd, 0));
  must(Step::init_drop, call(__NR_close_range, first_unwanted, last, 0));
  // The bounding set is for programs that exec, and init never does.
  must(Step::init_drop, call(__NR_setresgid, gid, gid, gid));
  must(Step::init_drop, call(__NR_setresuid, uid, uid, uid));
  must(Step::init_drop, call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
  __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[2] = {};
  must(Step::init_drop, call(__NR_capset, &head, none));
  must(Step::init_drop, call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  // Both are reset by a change of credentials, so they come last.
  must(Step::init_drop, call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
  must(Step::init_drop, call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
}

// Reaps whatever ended. When that was the server, its status is told and everything ends with init.
void reap(long server) {
  for (;;) {
    std::int32_t status = 0;
    const long pid = call(__NR_wait4, -1, &status, WNOHANG, nullptr);
    if (pid == interrupted) continue;
    if (pid <= 0) return;
    if (pid != server) continue;
    const orders::Report report{.kind = orders::Report::Kind::exited, .value = status};
    call(__NR_write, orders::control_fd, &report, sizeof(report));
    for (;;) call(__NR_exit_group, 0);
  }
}

// The server's process goes on from wait_for_init().
void release_server() {
  *init_is_ready = 1;
  constexpr long futex_wake = 1;
  must(Step::init_drop,
       call(__NR_futex, reinterpret_cast<long>(init_is_ready), futex_wake, 1, nullptr, nullptr, 0));
}

// False when the supervisor is gone.
bool obey(long server) {
  orders::Command command;
  const long size = call(__NR_read, orders::control_fd, &command, sizeof(command));
  if (size == interrupted || size == again) return true;
  if (size != sizeof(command)) return false;
  switch (command.kind) {
    case orders::Command::Kind::signal: call(__NR_kill, server, command.signal); break;
    case orders::Command::Kind::go: release_server(); break;
  }
  return true;
}

struct Poll {
  int fd;
  short events;
  short revents;
};

// `inner` is inner_fd or -1. Its other end closed means that the supervisor is gone, too.
[[noreturn]] void stay(long server, int signals, int inner) {
  for (;;) {
    Poll polls[3] = {{orders::control_fd, 1, 0}, {signals, 1, 0}, {inner, 1, 0}};
    call(__NR_ppoll, polls, 3, nullptr, nullptr, 0);
    if (polls[1].revents != 0) {
      char ignored[128];
      call(__NR_read, signals, ignored, sizeof(ignored));
      reap(server);
    }
    if (polls[0].revents != 0 && !obey(server)) {
      for (;;) call(__NR_exit_group, 0);
    }
    if ((polls[2].revents & ~1) != 0) inner = -1;
    if (polls[2].revents == 1) answer_inner_request();
  }
}

[[noreturn]] void run() {
  // Until the supervisor's end of the control socket is known to be gone or not, its death is ours.
  call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  read_orders();
  reset();
  raise_loopback();
  bound_buffers();
  make_network();
  set_host_name();
  build_mounts();
  call(__NR_umask, 022);

  begin(Step::fork_server);
  const long shared = must(Step::fork_server, call(__NR_mmap, 0, 4096, PROT_READ | PROT_WRITE,
                                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  init_is_ready = reinterpret_cast<volatile std::uint32_t*>(shared);
  const std::uint64_t child_signal = 1ULL << (SIGCHLD - 1);
  must(Step::fork_server,
       call(__NR_rt_sigprocmask, SIG_BLOCK, &child_signal, nullptr, sizeof(child_signal)));
  const long server = must(Step::fork_server, fork());
  if (server == 0) {
    const std::uint64_t none = 0;
    must(Step::fork_server, call(__NR_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof(none)));
    become_server();
  }
  const bool waits = header->has_network != 0;
  const int inner = header->inner_sockets != 0 ? orders::inner_fd : -1;
  drop_everything();
  constexpr long close_on_exec = 02000000;
  const long signals = must(Step::init_drop, call(__NR_signalfd4, -1, &child_signal,
                                                  sizeof(child_signal), close_on_exec));
  // With a network the supervisor says when: a server must not find ports where nobody accepts.
  if (!waits) release_server();
  reap(server);
  stay(server, static_cast<int>(signals), inner);
}

}  // namespace
}  // namespace capgate::sandbox::init

// Three of the names that the compiler may call without being asked.
extern "C" {
void* memset(void* to, int value, std::size_t size) {
  auto* at = static_cast<volatile unsigned char*>(to);
  for (std::size_t i = 0; i < size; ++i) at[i] = static_cast<unsigned char>(value);
  return to;
}
void* memcpy(void* to, const void* from, std::size_t size) {
  auto* at = static_cast<volatile unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  for (std::size_t i = 0; i < size; ++i) at[i] = source[i];
  return to;
}
// capgate starts it with its name alone, and other engines with "forward".
[[noreturn]] void capgate_init_start(long* stack) {
  using namespace capgate::sandbox::init;
  char** const words = reinterpret_cast<char**>(stack + 1);
  if (stack[0] > 1 && is_same(words[1], "forward")) forward(stack);
  run();
}
}

#if defined(__x86_64__)
asm(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call "
    "capgate_init_start\n");
#else
asm(".globl _start\n_start:\n  mov x29, #0\n  mov x0, sp\n  bl capgate_init_start\n");
#endif
