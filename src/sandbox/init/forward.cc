#include "sandbox/init/forward.h"

#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/in.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/signal.h>
#include <linux/tcp.h>
#include <linux/un.h>

#include "sandbox/init/init.h"

namespace capgate::sandbox::init {
namespace {

constexpr long refused = 125;
constexpr long family_unix = 1;
constexpr long family_inet = 2;
constexpr long stream = 1;
constexpr long datagram = 2;
constexpr long close_on_exec = 02000000;
constexpr long non_blocking = 04000;
constexpr long again = -11;
constexpr long name_too_long = -36;

constexpr const char* usage =
    "usage: capgate-init forward [--socket PATH] [--port N] [--unix-sockets] [--no-processes] -- "
    "COMMAND ARGS...\n";

// ---- the command line ---------------------------------------------------------------------------

struct Words {
  char** at;
  char** environment;
  const unsigned long* auxiliary;  // pairs
};

Words words_of(long* stack) {
  const long count = stack[0];
  char** const words = reinterpret_cast<char**>(stack + 1);
  char** const environment = words + count + 1;
  char** end = environment;
  while (*end != nullptr) ++end;
  // Past the name of the program and "forward".
  return {words + 2, environment, reinterpret_cast<const unsigned long*>(end + 1)};
}

// One directory holds both: the socket is looked for beside this very program.
const char* socket_beside(const unsigned long* auxiliary) {
  static char path[UNIX_PATH_MAX + 1];
  const char* program = "";
  for (; auxiliary[0] != AT_NULL; auxiliary += 2) {
    if (auxiliary[0] == AT_EXECFN) program = reinterpret_cast<const char*>(auxiliary[1]);
  }
  std::size_t directory = 0;
  for (std::size_t i = 0; program[i] != '\0'; ++i) {
    if (program[i] == '/') directory = i + 1;
  }
  constexpr const char* name = "egress.sock";
  if (directory == 0 || directory + length_of(name) > UNIX_PATH_MAX) {
    return "/run/capgate/egress.sock";
  }
  for (std::size_t i = 0; i < directory; ++i) path[i] = program[i];
  append(path + directory, name);
  return path;
}

char* value_of(char**& at) {
  if (at[1] == nullptr) give_up(refused, {"capgate-init: ", at[0], " needs a value\n", usage});
  return *++at;
}

Forward read_words(const Words& words) {
  Forward orders{.environment = words.environment};
  char** at = words.at;
  for (; *at != nullptr && **at == '-'; ++at) {
    if (is_same(*at, "--")) {
      ++at;
      break;
    }
    if (is_same(*at, "--socket")) {
      orders.socket = value_of(at);
    } else if (is_same(*at, "--port")) {
      orders.port = value_of(at);
    } else if (is_same(*at, "--unix-sockets")) {
      orders.allows_unix_sockets = true;
    } else if (is_same(*at, "--no-processes")) {
      orders.allows_processes = false;
    } else {
      give_up(refused, {"capgate-init: unknown word ", *at, "\n", usage});
    }
  }
  if (*at == nullptr) give_up(refused, {"capgate-init: no command\n", usage});
  orders.command = at;
  if (orders.socket == nullptr) orders.socket = socket_beside(words.auxiliary);
  return orders;
}

// 1 to 65535; 0 is none.
unsigned port_number(const char* text) {
  unsigned port = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9' || (port == 0 && *text == '0')) return 0;
    port = port * 10 + static_cast<unsigned>(*text - '0');
    if (port > 65535) return 0;
  }
  return port;
}

// ---- sockets ------------------------------------------------------------------------------------

// Engines bring it up themselves, or leave it to whoever may. Where neither did, listening tells.
void raise_loopback_if_down() {
  const long socket = call(__NR_socket, family_inet, datagram | close_on_exec, 0);
  if (socket < 0) return;
  struct {
    char name[16] = "lo";
    short flags = 0;
    char unused[22] = {};
  } request;  // struct ifreq; the kernel's header for it needs the library's
  constexpr long get_interface_flags = 0x8913;
  constexpr long set_interface_flags = 0x8914;
  constexpr short up = 1;
  if (call(__NR_ioctl, socket, get_interface_flags, &request) == 0 && (request.flags & up) == 0) {
    request.flags |= up;
    call(__NR_ioctl, socket, set_interface_flags, &request);
  }
  call(__NR_close, socket);
}

long listen_at(const Forward& orders) {
  const unsigned port = port_number(orders.port);
  if (port == 0) give_up(refused, {"capgate-init: no port: ", orders.port, "\n"});
  const auto must_listen = [&](long result) {
    if (result < 0) {
      give_up(refused, {"capgate-init: cannot listen at 127.0.0.1:", orders.port, ": ",
                        describe_error(result), "; see --port\n"});
    }
    return result;
  };
  const long listener = must_listen(
      call(__NR_socket, family_inet, stream | close_on_exec | non_blocking, IPPROTO_TCP));
  constexpr long level_socket = 1;
  constexpr long reuse_address = 2;
  const int on = 1;
  must_listen(call(__NR_setsockopt, listener, level_socket, reuse_address, &on, sizeof(on)));
  must_listen(call(__NR_setsockopt, listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
  sockaddr_in here{};
  here.sin_family = family_inet;
  here.sin_port = __builtin_bswap16(static_cast<std::uint16_t>(port));
  here.sin_addr.s_addr = __builtin_bswap32(INADDR_LOOPBACK);
  must_listen(call(__NR_bind, listener, &here, sizeof(here)));
  constexpr long backlog = 1024;
  must_listen(call(__NR_listen, listener, backlog));
  return listener;
}

// Told here, while there is somebody to tell: later the command would only see resets.
void check_broker(const char* path) {
  const long broker = connect_to_broker(path);
  if (broker < 0 && broker != again) {
    give_up(refused, {"capgate-init: cannot reach capgate egress at ", path, ": ",
                      describe_error(broker), "\n"});
  }
  if (broker >= 0) call(__NR_close, broker);
}

// ---- processes ----------------------------------------------------------------------------------

// stdin, stdout and stderr are the command's, and so is whatever else was handed to it: whoever
// waits for their end waits for the command alone.
void close_all_but(long listener) {
  constexpr long last = ~0U;
  if (listener > 0) call(__NR_close_range, 0, listener - 1, 0);
  call(__NR_close_range, listener + 1, last, 0);
  for (long fd = 0; fd < 3; ++fd) {
    if (fd != listener) call(__NR_close, fd);  // where the kernel has no close_range
  }
}

// Without this step the command would hold more than it may: it does not start.
long must(long result, const char* step) {
  if (result < 0) give_up(refused, {"capgate-init: ", step, ": ", describe_error(result), "\n"});
  return result;
}

void allow_many_descriptors() {
  std::uint64_t files[2] = {};
  if (call(__NR_prlimit64, 0, RLIMIT_NOFILE, nullptr, files) != 0) return;
  files[0] = files[1];
  call(__NR_prlimit64, 0, RLIMIT_NOFILE, files, nullptr);
}

}  // namespace

long connect_to_broker(const char* path) {
  sockaddr_un there{};
  there.sun_family = family_unix;
  if (length_of(path) >= sizeof(there.sun_path)) return name_too_long;
  append(there.sun_path, path);
  const long broker = call(__NR_socket, family_unix, stream | close_on_exec | non_blocking, 0);
  if (broker < 0) return broker;
  const long result = call(__NR_connect, broker, &there, sizeof(there));
  if (result == 0) return broker;
  call(__NR_close, broker);
  return result;
}

void give_up(long status, std::initializer_list<const char*> words) {
  constexpr long errors = 2;
  for (const char* word : words) call(__NR_write, errors, word, length_of(word));
  for (;;) call(__NR_exit_group, status);
}

const char* describe_error(long error) {
  switch (-error) {
    case 1: return "not permitted";
    case 2: return "no such file";
    case 8: return "no program that this system can run";
    case 13: return "permission denied";
    case 20: return "not a directory";
    case 36: return "the path is too long";
    case 97: return "such sockets cannot be made here";
    case 98: return "the port is taken";
    case 99: return "there is no such address here";
    case 111: return "nobody listens there";
    default: return "the kernel refuses it";
  }
}

void forward(long* stack) {
  const Forward orders = read_words(words_of(stack));
  // An exec makes the command dumpable again; this process stays closed to it.
  must(call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0), "not dumpable");
  must(call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  check_broker(orders.socket);
  raise_loopback_if_down();
  const long listener = listen_at(orders);

  // Blocked from here on, so that none is lost before the loop waits for them.
  std::uint64_t before = 0;
  const std::uint64_t all = ~0ULL;
  call(__NR_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
  const long self = call(__NR_getpid);
  const long command = must(fork(), "fork");
  if (command > 0) {
    close_all_but(listener);
    allow_many_descriptors();
    carry({orders, listener, command});
  }
  call(__NR_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof(before));
  // The command must not outlive its way out. The parent may be gone already.
  must(call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "death signal");
  if (call(__NR_getppid) != self) give_up(refused, {});
  run_command(orders);
}

}  // namespace capgate::sandbox::init
