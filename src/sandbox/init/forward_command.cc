// The child of `capgate-init forward`: from here to the exec of the command.
#include "sandbox/init/forward.h"
#include "sandbox/init/forward_filter.h"
#include "sandbox/proxy_variables.h"

namespace capgate::sandbox::init {
namespace {

constexpr long refused = 125;
constexpr long cannot_run = 126;
constexpr long not_found = 127;
constexpr long no_entry = -2;
constexpr long no_access = -13;
constexpr long not_a_directory = -20;

// ---- the filter ---------------------------------------------------------------------------------

constexpr std::uint32_t all_bits = ~0U;
constexpr std::uint32_t type_bits = 0xf;

// The engine's own filter must let this program make Unix sockets and a process. Whom the policy
// gives neither gets the answers of capgate's filter here (docs/seccomp.md). A pair of datagram
// sockets (of raw ones, which are the same) could be turned to any socket that has a name, and what
// io_uring does is seen by no filter.
constexpr CallAnswer unix_refusals[] = {
    {.call = __NR_socket, .mask = all_bits, .value = 1},
    {.call = __NR_socketpair, .argument = 1, .mask = type_bits, .value = 2},
    {.call = __NR_socketpair, .argument = 1, .mask = type_bits, .value = 3},
    {.call = __NR_io_uring_setup, .answer = not_there_answer},
};
constexpr std::uint32_t clone_thread = 0x10000;
constexpr CallAnswer process_refusals[] = {
    {.call = __NR_clone, .mask = clone_thread, .value = 0},
    {.call = __NR_clone3, .answer = not_there_answer},
#if defined(__x86_64__)
    {.call = __NR_fork},
    {.call = __NR_vfork},
#endif
};

void install_filter(const Forward& orders) {
  Filter filter;
  if (!orders.allows_unix_sockets) {
    for (const CallAnswer& refusal : unix_refusals) filter.answer(refusal);
  }
  if (!orders.allows_processes) {
    for (const CallAnswer& refusal : process_refusals) filter.answer(refusal);
  }
  const long result = filter.install(SECCOMP_RET_ALLOW);
  if (result < 0) give_up(refused, {"capgate-init: seccomp: ", describe_error(result), "\n"});
}

// ---- the environment ----------------------------------------------------------------------------

// Wherever an earlier one leads, it is not reached from here.
bool is_about_proxies(const char* entry) {
  const char* rest = nullptr;
  const auto has_name = [&](const char* name) {
    return begins(entry, name, &rest) && *rest == '=';
  };
  for (const char* name : proxy_names) {
    if (has_name(name)) return true;
  }
  for (const char* name : no_proxy_names) {
    if (has_name(name)) return true;
  }
  return has_name("ALL_PROXY") || has_name("all_proxy") || has_name("NODE_USE_ENV_PROXY");
}

constexpr std::size_t added = sizeof(proxy_names) / sizeof(proxy_names[0]) +
                              sizeof(no_proxy_names) / sizeof(no_proxy_names[0]) + 1;

// `to` has room for all of it, and for the null at the end.
void write_environment(const Forward& orders, const char** to) {
  static char texts[added][64];
  for (char** entry = orders.environment; *entry != nullptr; ++entry) {
    if (!is_about_proxies(*entry)) *to++ = *entry;
  }
  std::size_t count = 0;
  for (const char* name : proxy_names) {
    append(append(append(texts[count], name), "=http://127.0.0.1:"), orders.port);
    *to++ = texts[count++];
  }
  for (const char* name : no_proxy_names) {
    append(append(append(texts[count], name), "="), no_proxy_places);
    *to++ = texts[count++];
  }
  *to++ = "NODE_USE_ENV_PROXY=1";  // its fetch looks at the others only then
  *to = nullptr;
}

// ---- the program --------------------------------------------------------------------------------

const char* search_path(const Forward& orders) {
  const char* rest = nullptr;
  for (char** entry = orders.environment; *entry != nullptr; ++entry) {
    if (begins(*entry, "PATH=", &rest)) return rest;
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

bool has_slash(const char* text) {
  while (*text != '\0' && *text != '/') ++text;
  return *text == '/';
}

// In each directory of PATH, as a shell does; an empty one is the current one. What was found but
// cannot be run outweighs what was not found.
long run_from_path(const Forward& orders, const char** environment) {
  constexpr std::size_t longest = 4096;
  static char path[longest + 1];
  const char* const name = orders.command[0];
  const std::size_t name_size = length_of(name);
  long answer = no_entry;
  for (const char* at = search_path(orders);; ++at) {
    std::size_t size = 0;
    for (; *at != '\0' && *at != ':'; ++at) {
      if (size < longest) path[size++] = *at;
    }
    if (size > 0) path[size++] = '/';
    if (size + name_size <= longest) {
      append(path + size, name);
      const long error = call(__NR_execve, path, orders.command, environment);
      if (error == no_access) answer = error;
      if (error != no_access && error != no_entry && error != not_a_directory) return error;
    }
    if (*at == '\0') return answer;
  }
}

}  // namespace

void run_command(const Forward& orders) {
  std::size_t count = 0;
  while (orders.environment[count] != nullptr) ++count;
  const char** environment =
      static_cast<const char**>(__builtin_alloca((count + added + 1) * sizeof(char*)));
  write_environment(orders, environment);
  install_filter(orders);
  const char* const name = orders.command[0];
  const long error = has_slash(name) ? call(__NR_execve, name, orders.command, environment)
                                     : run_from_path(orders, environment);
  give_up(error == no_entry ? not_found : cannot_run,
          {"capgate-init: cannot run ", name, ": ", describe_error(error), "\n"});
}

}  // namespace capgate::sandbox::init
