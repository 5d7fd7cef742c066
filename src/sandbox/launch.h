// Starts capgate-init in namespaces of its own.
//
//   auto sandbox = launch(orders, stdio, ...);
//   sandbox->init       pidfd of pid 1
//   sandbox->control    reports and commands (orders.h)
//   sandbox->errors     the read end of the server's stderr
//
// Order in the supervisor: clone3, and in the child the id maps, then the exec of init, which holds
// nothing of the supervisor's memory. The supervisor is not dumpable from here on, or before; the
// child is until then, since only a dumpable process can write its maps.
//
// Started by root, the child first leaves root: it becomes a user that no account owns before it
// makes its namespaces, and granted paths are mounts that root made for it with their owner mapped.
#pragma once

#include <sys/types.h>

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/bind.h"
#include "sandbox/orders_write.h"
#include "sys/fd.h"

namespace capgate::sandbox {

struct Sandbox {
  sys::Fd init;  // pidfd
  pid_t pid = -1;
  sys::Fd control;
  sys::Fd errors;
};

// Where the child goes before it makes its namespaces.
struct Placement {
  std::vector<int> cgroup_procs;  // files to which the child writes "0"
  int cgroup = -1;                // a v2 directory to be cloned into
};

// The user that the sandbox runs as on the host.
struct HostUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  bool leaves_root = false;
  std::uint32_t inside = 1000;  // the id of both in the sandbox
};
[[nodiscard]] HostUser choose_host_user();
// Another one, so that the broker has no right over the sandbox's namespaces, which their owner
// has.
[[nodiscard]] HostUser choose_broker_user();
// For a child that runs a program next: only async-signal-safe calls. False: errno says why.
[[nodiscard]] bool leave_root_for_good(const HostUser& user);

// The bytes of capgate-init.
[[nodiscard]] std::string_view init_program();

// A file in memory that nobody can change any more; the error is an errno.
[[nodiscard]] std::expected<sys::Fd, int> sealed_file(const char* name, std::string_view contents,
                                                      bool runs);

// Detached mounts with the owner of each granted path mapped to the sandbox's user, and their
// places in `bound.mounts`. Only for root.
struct Trees {
  std::vector<sys::Fd> fds;
  std::vector<int> numbers;  // for each mount: descriptor in init, or -1
};
[[nodiscard]] std::expected<Trees, Refusal> make_trees(const Bound& bound, const HostUser& user);

struct LaunchDetails {
  orders::Step fail_step = orders::Step::none;
  int inner_sockets = -1;  // becomes orders::inner_fd
  int input = -1;          // the server's 0 and 1 instead of the caller's (relay.h)
  int output = -1;
};

[[nodiscard]] std::expected<Sandbox, Refusal> launch(const std::string& orders,
                                                     const HostUser& user, const Trees& trees,
                                                     const Placement& placement,
                                                     const LaunchDetails& details = {});

}  // namespace capgate::sandbox
