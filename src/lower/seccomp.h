// The system call filter: a pure function from what the policy needs to a BPF program.
//
//   const SeccompNeeds needs{.processes = true, .unix_sockets = true};
//   const BpfProgram filter = assemble(Arch::x86_64, seccomp_rules(needs));  // lower/bpf.h
//   dump(filter)  -> one line per instruction, for people
//
// It is an allowlist by purpose: what node, python, java, go and static programs need. Everything
// else is ENOSYS, as on a kernel that never had the call. See docs/seccomp.md for the table.
// Callers that only need the finished filter use lower/seccomp_shared.h, which builds each one
// once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/syscalls.h"

namespace capgate::lower {

enum class Arch : std::uint8_t { x86_64, aarch64 };

// What of a policy decides the filter. Everything false is the narrowest one: threads, files and
// the server's own loopback TCP and UDP, but no child process, no Unix socket, no namespace.
struct SeccompNeeds {
  bool processes = false;  // exec capabilities: fork and exec of further programs
  bool nested_sandbox =
      false;  // exec with nestedSandbox=true: namespaces for a browser's own sandbox
  bool unix_sockets = false;   // any ipc capability: AF_UNIX sockets can be made
  bool netlink_route = false;  // ipc:connect:netlink-route: AF_NETLINK with NETLINK_ROUTE
  // execve passes only with a per-launch value in its unused argument registers (native engine).
  // Engines whose own last step is a plain execve (bwrap, docker) leave it off.
  bool exec_token = false;
  // capgate-init between the engine and the server (lower/forwarder.h): it starts the server as a
  // child and connects to a Unix socket. It then takes both away from the server, where no other
  // need gives them.
  bool forwarder = false;
  // No cgroup counts the server's memory, so it gets none that no process maps: no memfd, no System
  // V objects, which have no bound inside a user namespace, and no larger buffers of sockets than
  // every socket has. Known at launch only.
  bool memory_is_mapped = false;
  // A grant that may add to a directory or remove from it, and not both (fs:create, fs:delete),
  // does not let change the modes, times, owners and extended attributes of what is there. Neither
  // mounts nor Landlock can tell these from other changes, so the calls are refused, everywhere.
  bool fixed_attributes = false;

  friend bool operator==(const SeccompNeeds&, const SeccompNeeds&) = default;
};

// Linux's numbers, equal on both architectures; not <cerrno>, whose values are the build machine's.
enum class Errno : std::uint16_t {
  none = 0,  // the call is skipped, and answers that it succeeded
  eperm = 1,
  eacces = 13,  // in docker profiles only
  enosys = 38,
  eprotonosupport = 93,
  eafnosupport = 97,
};

enum class ActionKind : std::uint8_t { allow, error, kill_process };

struct Action {
  ActionKind kind = ActionKind::error;
  Errno error = Errno::enosys;  // only for ActionKind::error

  friend bool operator==(const Action&, const Action&) = default;
};

inline constexpr Action allow{.kind = ActionKind::allow};
inline constexpr Action kill_process{.kind = ActionKind::kill_process};
inline constexpr Action not_permitted{.kind = ActionKind::error, .error = Errno::eperm};
inline constexpr Action skipped{.kind = ActionKind::error, .error = Errno::none};
inline constexpr Action not_there{.kind = ActionKind::error, .error = Errno::enosys};

enum class TestKind : std::uint8_t {
  low_half,  // (argument & mask) == value, in the low 32 bits
  token,     // all 64 bits equal the launch's exec token, which is not known when compiling
};

// One question about one argument. Every argument that the rules look at is an int, a mode or a
// flag word of which the kernel reads the low 32 bits only: comparing 64 would let junk in the
// upper half pass a refusal (CVE-2019-10063), or break a program whose compiler left some there.
// The default test has an empty mask and is always true: it fills the unused places of a rule.
struct ArgTest {
  TestKind kind = TestKind::low_half;
  std::uint8_t arg = 0;
  std::uint32_t mask = 0;
  std::uint32_t value = 0;

  friend bool operator==(const ArgTest&, const ArgTest&) = default;
};
[[nodiscard]] constexpr bool is_always_true(const ArgTest& test) {
  return test.kind == TestKind::low_half && test.mask == 0;
}

// A call to which every test applies gets `action`. Of several rules for one call the first that
// applies decides; where none does, the answer is ENOSYS. Real tests come before the filling ones.
struct Rule {
  core::SyscallId call;
  Action action;
  std::array<ArgTest, 3> when{};

  friend bool operator==(const Rule&, const Rule&) = default;
};

[[nodiscard]] std::vector<Rule> seccomp_rules(const SeccompNeeds& needs);

// "openat: allow if (arg3 & 0xc00) == 0x0", one line per rule, in order.
[[nodiscard]] std::string dump(const std::vector<Rule>& rules);
[[nodiscard]] std::string describe(const Action& action);  // "allow", "EPERM", "kill process"

// The call's number, or core::absent.
[[nodiscard]] int syscall_number(Arch arch, core::SyscallId call);

}  // namespace capgate::lower
