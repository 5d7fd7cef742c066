#include "lower/seccomp.h"

#include "lower/seccomp_constants.h"
#include "lower/seccomp_groups.h"

namespace capgate::lower {
namespace {

using namespace linux_abi;
using core::syscall;
using core::SyscallId;

using Rules = std::vector<Rule>;

constexpr ArgTest equals(std::uint8_t arg, std::uint32_t value) {
  return {.arg = arg, .mask = all_bits, .value = value};
}
constexpr ArgTest masked(std::uint8_t arg, std::uint32_t mask, std::uint32_t value) {
  return {.arg = arg, .mask = mask, .value = value};
}
constexpr ArgTest has_none_of(std::uint8_t arg, std::uint32_t bits) { return masked(arg, bits, 0); }
constexpr ArgTest is_token(std::uint8_t arg) { return {.kind = TestKind::token, .arg = arg}; }

void add_groups(Rules& rules, std::span<const CallGroup> groups) {
  for (const CallGroup& group : groups) {
    for (const SyscallId call : group.calls) rules.push_back({call, group.action});
  }
}

// A setuid or setgid file that is planted in a writable grant works on the host, where the mount is
// not nosuid. Hence no call may set these bits; openat2, whose mode is behind a pointer, is ENOSYS.
void add_modes(Rules& rules, const SeccompNeeds& needs) {
  struct ModeCall {
    SyscallId call;
    std::uint8_t mode_arg;
    bool changes;  // what is there already
  };
  constexpr auto calls = std::to_array<ModeCall>({
      {syscall("chmod"), 1, true},
      {syscall("fchmod"), 1, true},
      {syscall("fchmodat"), 2, true},
      {syscall("fchmodat2"), 2, true},
      {syscall("creat"), 1, false},
      {syscall("mkdir"), 1, false},
      {syscall("mkdirat"), 2, false},
  });
  for (const auto& [call, mode_arg, changes] : calls) {
    if (!changes || !needs.fixed_attributes) {
      rules.push_back({call, allow, {has_none_of(mode_arg, set_id_bits)}});
    }
    rules.push_back({call, not_permitted});
  }
  for (const SyscallId call : attribute_calls()) {
    rules.push_back({call, needs.fixed_attributes ? not_permitted : allow});
  }
}

// open without O_CREAT ignores its mode, and C libraries leave junk there: then it must not count.
void add_open(Rules& rules, SyscallId call, std::uint8_t flags_arg) {
  const auto mode_arg = static_cast<std::uint8_t>(flags_arg + 1);
  rules.push_back({call, allow, {has_none_of(mode_arg, set_id_bits)}});
  rules.push_back({call, allow, {has_none_of(flags_arg, open_creates)}});
  rules.push_back({call, not_permitted});
}

// Plain files and named pipes only. A device node would be one for the host too, and a socket node
// that nobody is bound to serves no program.
void add_mknod(Rules& rules, SyscallId call, std::uint8_t mode_arg) {
  constexpr std::uint32_t seen = file_type_mask | set_id_bits;
  for (const std::uint32_t type : {std::uint32_t{0}, type_regular, type_fifo}) {
    rules.push_back({call, allow, {masked(mode_arg, seen, type)}});
  }
  rules.push_back({call, not_permitted});
}

void add_files(Rules& rules, const SeccompNeeds& needs) {
  add_modes(rules, needs);
  add_open(rules, syscall("open"), 1);
  add_open(rules, syscall("openat"), 2);
  add_mknod(rules, syscall("mknod"), 1);
  add_mknod(rules, syscall("mknodat"), 2);
}

// A browser's own sandbox makes user, PID, network and IPC namespaces. It does not mount, so it
// does not get the namespaces in which mounting would be the next step.
std::uint32_t refused_namespaces(const SeccompNeeds& needs) {
  constexpr std::uint32_t never = new_mount | new_cgroup | new_uts;
  return needs.nested_sandbox ? never : never | new_ipc | new_user | new_pid | new_net;
}

// Threads are always possible, processes only with an exec capability.
void add_clone(Rules& rules, const SeccompNeeds& needs) {
  const std::uint32_t bad = refused_namespaces(needs);
  const bool children = needs.processes || needs.forwarder;
  rules.push_back({syscall("clone"),
                   allow,
                   {children ? has_none_of(0, bad) : masked(0, bad | clone_thread, clone_thread)}});
  rules.push_back({syscall("clone"), not_permitted});
  rules.push_back({syscall("fork"), children ? allow : not_permitted});
  rules.push_back({syscall("vfork"), children ? allow : not_permitted});
}

void add_namespaces(Rules& rules, const SeccompNeeds& needs) {
  if (needs.nested_sandbox) {
    const std::uint32_t bad = refused_namespaces(needs) | new_time;
    rules.push_back({syscall("unshare"), allow, {has_none_of(0, bad)}});
  }
  rules.push_back({syscall("unshare"), not_permitted});
  rules.push_back({syscall("chroot"), needs.nested_sandbox ? allow : not_permitted});
}

// Only capgate-init knows the token, and it is gone from the registers once its exec is through.
// A low half of zero is refused first: a program whose token was never filled in (all zeros) then
// refuses every exec instead of allowing those that leave the registers empty.
void add_token_exec(Rules& rules) {
  rules.push_back({syscall("execve"), not_permitted, {equals(3, 0)}});
  rules.push_back({syscall("execve"), allow, {is_token(3), is_token(4), is_token(5)}});
  rules.push_back({syscall("execve"), not_permitted});
  rules.push_back({syscall("execveat"), not_permitted, {equals(5, 0)}});
  rules.push_back({syscall("execveat"), allow, {is_token(5)}});
  rules.push_back({syscall("execveat"), not_permitted});
}

// Without the token the engine's own last step is a plain execve, which must pass.
// A file in memory has no path that a policy could name: where an exec can follow, it is ENOSYS.
void add_exec(Rules& rules, const SeccompNeeds& needs) {
  const bool one_exec_only = needs.exec_token && !needs.processes;
  if (one_exec_only) {
    add_token_exec(rules);
  } else {
    rules.push_back({syscall("execve"), allow});
    rules.push_back({syscall("execveat"), needs.processes ? allow : not_permitted});
  }
  const bool has_memfd = one_exec_only && !needs.memory_is_mapped;
  rules.push_back({syscall("memfd_create"), has_memfd ? allow : not_there});
}

// Objects that outlive the process that made them, and of which 32,000 of 2 MB each can be made.
// A rule before that of the group: the first one decides.
void add_unmapped_memory(Rules& rules, const SeccompNeeds& needs) {
  if (!needs.memory_is_mapped) return;
  for (const SyscallId call : {syscall("shmget"), syscall("semget"), syscall("msgget")}) {
    rules.push_back({call, not_there});
  }
}

// TCP and UDP and nothing else: other protocols of these families (SCTP, L2TP, MPTCP ...) load
// kernel modules on demand. They answer as a kernel does that was built without them.
void add_internet_sockets(Rules& rules, std::uint32_t family) {
  constexpr SyscallId call = syscall("socket");
  struct Transport {
    std::uint32_t type;
    std::uint32_t protocol;
  };
  constexpr auto transports =
      std::to_array<Transport>({{socket_stream, protocol_tcp}, {socket_dgram, protocol_udp}});
  constexpr Action unknown_protocol{ActionKind::error, Errno::eprotonosupport};
  for (const auto& [type, protocol] : transports) {
    const ArgTest of_family = equals(0, family);
    const ArgTest of_type = masked(1, socket_type_mask, type);
    rules.push_back({call, allow, {of_family, of_type, equals(2, protocol_default)}});
    rules.push_back({call, allow, {of_family, of_type, equals(2, protocol)}});
    rules.push_back({call, unknown_protocol, {of_family, of_type}});
  }
  rules.push_back({call, not_permitted, {equals(0, family)}});
}

void add_sockets(Rules& rules, const SeccompNeeds& needs) {
  constexpr SyscallId call = syscall("socket");
  add_internet_sockets(rules, family_inet);
  add_internet_sockets(rules, family_inet6);
  if (needs.forwarder && !needs.unix_sockets) {
    rules.push_back(
        {call, allow, {equals(0, family_unix), masked(1, socket_type_mask, socket_stream)}});
  }
  rules.push_back({call, needs.unix_sockets ? allow : not_permitted, {equals(0, family_unix)}});
  if (needs.netlink_route) {
    rules.push_back({call, allow, {equals(0, family_netlink), equals(2, netlink_route_protocol)}});
  }
  // Said of netlink by name, although the last line covers it: docker profiles keep this one.
  constexpr Action unknown_family{ActionKind::error, Errno::eafnosupport};
  rules.push_back({call, unknown_family, {equals(0, family_netlink)}});
  rules.push_back({call, unknown_family});

  // Already connected when made, so it leads nowhere else. A datagram pair could be turned to any
  // Unix socket that has a name.
  constexpr SyscallId pair = syscall("socketpair");
  for (const std::uint32_t type : {socket_stream, socket_seqpacket}) {
    rules.push_back({pair, allow, {equals(0, family_unix), masked(1, socket_type_mask, type)}});
  }
  rules.push_back({pair, not_permitted});
}

// Inside a user namespace of its own the browser has CAP_NET_ADMIN. Replacing packet filter tables
// is the one use of it that needs no raw and no netlink socket, and a classic of kernel exploits
// (CVE-2021-22555). Elsewhere nobody has the capability.
void add_socket_options(Rules& rules, const SeccompNeeds& needs) {
  constexpr SyscallId call = syscall("setsockopt");
  // A size that is asked for is a wish: the kernel, too, gives less without a word.
  if (needs.memory_is_mapped) {
    for (const std::uint32_t option : {socket_send_buffer, socket_receive_buffer}) {
      rules.push_back({call, skipped, {equals(1, level_socket), equals(2, option)}});
    }
  }
  if (needs.nested_sandbox) {
    rules.push_back({call, allow, {equals(1, level_ip), has_none_of(2, ~ip_options)}});
    rules.push_back({call, not_permitted, {equals(1, level_ip)}});
    rules.push_back({call, not_permitted, {equals(1, level_ipv6), equals(2, replace_ip6tables)}});
    rules.push_back({call, allow, {equals(1, level_ipv6), has_none_of(2, ~ipv6_options)}});
    rules.push_back({call, not_permitted, {equals(1, level_ipv6)}});
  }
  rules.push_back({call, allow});
}

void add_descriptor_commands(Rules& rules) {
  constexpr SyscallId control = syscall("ioctl");
  for (const std::uint32_t command : terminal_attacks) {
    rules.push_back({control, not_permitted, {equals(1, command)}});
  }
  rules.push_back({control, allow, {masked(1, ioctl_eight, socket_ioctls)}});
  for (const std::uint32_t family : {interface_ioctls, wireless_ioctls}) {
    rules.push_back({control, not_permitted, {masked(1, ioctl_family, family)}});
  }
  rules.push_back({control, allow});

  for (const auto& [mask, value] : fcntl_commands) {
    rules.push_back({syscall("fcntl"), allow, {masked(1, mask, value)}});
  }
  rules.push_back({syscall("fcntl"), not_permitted});
}

void add_self_control(Rules& rules) {
  for (const std::uint32_t option : prctl_options) {
    rules.push_back({syscall("prctl"), allow, {equals(0, option)}});
  }
  rules.push_back({syscall("prctl"), not_permitted});

  // Other personalities switch off address randomisation or make every mapping executable.
  for (const std::uint32_t persona : {personality_linux, personality_query}) {
    rules.push_back({syscall("personality"), allow, {equals(0, persona)}});
  }
  rules.push_back({syscall("personality"), not_permitted});

  // A further filter can only narrow: the stricter answer wins. A listener is refused, because a
  // task has one at most and it is the supervisor's (run --trace).
  constexpr SyscallId call = syscall("seccomp");
  rules.push_back(
      {call, allow, {equals(0, seccomp_set_mode_filter), has_none_of(1, seccomp_new_listener)}});
  for (const std::uint32_t operation :
       {seccomp_set_mode_strict, seccomp_get_action_avail, seccomp_get_notif_sizes}) {
    rules.push_back({call, allow, {equals(0, operation)}});
  }
  rules.push_back({call, not_permitted});
}

}  // namespace

Rules seccomp_rules(const SeccompNeeds& needs) {
  Rules rules;
  rules.reserve(512);  // more than there are: one allocation
  add_unmapped_memory(rules, needs);
  add_groups(rules, allowed_groups());
  add_files(rules, needs);
  add_clone(rules, needs);
  add_exec(rules, needs);
  add_namespaces(rules, needs);
  add_sockets(rules, needs);
  add_socket_options(rules, needs);
  add_descriptor_commands(rules);
  add_self_control(rules);
  add_groups(rules, refused_groups());
  return rules;
}

int syscall_number(Arch arch, SyscallId call) {
  const core::Syscall& entry = core::syscall_info(call);
  switch (arch) {
    case Arch::x86_64: return entry.x86_64;
    case Arch::aarch64: return entry.aarch64;
  }
  return core::absent;
}

}  // namespace capgate::lower
