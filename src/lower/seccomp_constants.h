// Linux's constants that the rules compare arguments with: pure code may not include <sys/*> and
// <linux/*>. All of them are equal on x86_64 and aarch64 (O_DIRECTORY, which is not, is not used).
#pragma once

#include <array>
#include <cstdint>

namespace capgate::lower::linux_abi {

inline constexpr std::uint32_t all_bits = 0xffffffff;

// Modes.
inline constexpr std::uint32_t set_id_bits = 06000;  // S_ISUID | S_ISGID
inline constexpr std::uint32_t file_type_mask = 0170000;
inline constexpr std::uint32_t type_regular = 0100000;
inline constexpr std::uint32_t type_fifo = 0010000;

// open flags with which the mode argument counts: O_CREAT and the own bit of O_TMPFILE.
inline constexpr std::uint32_t open_creates = 0x40 | 0x400000;

// clone and unshare.
inline constexpr std::uint32_t clone_thread = 0x00010000;
inline constexpr std::uint32_t new_time = 0x00000080;  // unshare only: clone reads a signal there
inline constexpr std::uint32_t new_mount = 0x00020000;
inline constexpr std::uint32_t new_cgroup = 0x02000000;
inline constexpr std::uint32_t new_uts = 0x04000000;
inline constexpr std::uint32_t new_ipc = 0x08000000;
inline constexpr std::uint32_t new_user = 0x10000000;
inline constexpr std::uint32_t new_pid = 0x20000000;
inline constexpr std::uint32_t new_net = 0x40000000;

// Sockets.
inline constexpr std::uint32_t family_unix = 1;
inline constexpr std::uint32_t family_inet = 2;
inline constexpr std::uint32_t family_inet6 = 10;
inline constexpr std::uint32_t family_netlink = 16;
inline constexpr std::uint32_t netlink_route_protocol = 0;
inline constexpr std::uint32_t socket_type_mask = 0xf;  // above it: SOCK_NONBLOCK, SOCK_CLOEXEC
inline constexpr std::uint32_t socket_stream = 1;
inline constexpr std::uint32_t socket_dgram = 2;
inline constexpr std::uint32_t socket_seqpacket = 5;
inline constexpr std::uint32_t protocol_default = 0;
inline constexpr std::uint32_t protocol_tcp = 6;
inline constexpr std::uint32_t protocol_udp = 17;
inline constexpr std::uint32_t level_ip = 0;
inline constexpr std::uint32_t level_socket = 1;
inline constexpr std::uint32_t socket_send_buffer = 7;
inline constexpr std::uint32_t socket_receive_buffer = 8;
inline constexpr std::uint32_t level_ipv6 = 41;
// Packet filter tables are options 64, 96 and 128 (IPT_, ARPT_, EBT_SO_SET_...) of the IPv4 level,
// above all true options, and 64 (IP6T_SO_SET_REPLACE) of the IPv6 level, among them.
inline constexpr std::uint32_t ip_options = 0x3f;
inline constexpr std::uint32_t ipv6_options = 0x7f;
inline constexpr std::uint32_t replace_ip6tables = 64;

// seccomp.
inline constexpr std::uint32_t seccomp_set_mode_strict = 0;
inline constexpr std::uint32_t seccomp_set_mode_filter = 1;
inline constexpr std::uint32_t seccomp_get_action_avail = 2;
inline constexpr std::uint32_t seccomp_get_notif_sizes = 3;
inline constexpr std::uint32_t seccomp_new_listener = 8;

// personality.
inline constexpr std::uint32_t personality_linux = 0;
inline constexpr std::uint32_t personality_query = 0xffffffff;

// Terminal commands that act on whoever else uses the terminal.
inline constexpr auto terminal_attacks = std::to_array<std::uint32_t>({
    0x5412,  // TIOCSTI: types into the terminal (CVE-2017-5226)
    0x541c,  // TIOCLINUX: pastes into a console (CVE-2023-28100)
    0x541d,  // TIOCCONS: takes the console's output
    0x5423,  // TIOCSETD: loads a line discipline, a part of the kernel with a poor record
});

// ioctls of sockets about interfaces, addresses, routes and neighbours (0x89xx), and of wireless
// ones (0x8bxx). A socket that the server inherits as its stdio is one of the host's network
// namespace, and SIOCGSKNS opens the namespace itself. The first eight of 0x89xx concern the socket
// alone: owner, process group, urgent mark, time stamps.
inline constexpr std::uint32_t ioctl_family = 0xffffff00;
inline constexpr std::uint32_t interface_ioctls = 0x8900;
inline constexpr std::uint32_t wireless_ioctls = 0x8b00;
inline constexpr std::uint32_t ioctl_eight = 0xfffffff8;
inline constexpr std::uint32_t socket_ioctls = 0x8900;

// fcntl commands, as mask and value: 0 to 31 (flags, locks, owner) and 1025 to 1039 (copies, pipes,
// seals, hints). Not here, so refused: F_SETLEASE (1024) and F_SETDELEG (1040), for while a lease
// is held, everyone else who opens the file waits.
struct MaskedValue {
  std::uint32_t mask;
  std::uint32_t value;
};
inline constexpr auto fcntl_commands = std::to_array<MaskedValue>({
    {0xffffffe0, 0},
    {0xffffffff, 1025},
    {0xfffffffe, 1026},
    {0xfffffffc, 1028},
    {0xfffffff8, 1032},
});

// prctl options that read, or change nothing but the caller's own threads and only harmlessly.
// Not here, so refused: PR_SET_MM (forges /proc/self/exe), PR_SET_SECUREBITS, PR_SET_PTRACER,
// PR_SET_SPECULATION_CTRL, PR_SCHED_CORE, PR_SET_MEMORY_MERGE, PR_SET_SYSCALL_USER_DISPATCH.
inline constexpr auto prctl_options = std::to_array<std::uint32_t>({
    1,          2,  // PR_SET_PDEATHSIG, PR_GET_PDEATHSIG: runtimes that end with their parent
    3,          4,  // PR_GET_DUMPABLE, PR_SET_DUMPABLE: agents hide their memory; init's is its own
    7,          8,  // PR_GET_KEEPCAPS, PR_SET_KEEPCAPS: docker's start; there are none to keep
    15,         16,      // PR_SET_NAME, PR_GET_NAME: thread names
    21,         22,      // PR_GET_SECCOMP, PR_SET_SECCOMP: a further filter only narrows
    23,         24,      // PR_CAPBSET_READ, PR_CAPBSET_DROP
    25,         27,      // PR_GET_TSC, PR_GET_SECUREBITS
    29,         30,      // PR_SET_TIMERSLACK, PR_GET_TIMERSLACK
    36,         37,      // PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER: process managers
    38,         39,      // PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS
    40,                  // PR_GET_TID_ADDRESS
    41,         42,      // PR_SET_THP_DISABLE, PR_GET_THP_DISABLE: allocators
    47,                  // PR_CAP_AMBIENT: raising needs a capability that is held already
    50,         51,      // PR_SVE_SET_VL, PR_SVE_GET_VL (aarch64 vectors)
    52,                  // PR_GET_SPECULATION_CTRL
    54,                  // PR_PAC_RESET_KEYS (aarch64)
    55,         56,      // PR_SET_TAGGED_ADDR_CTRL, PR_GET_TAGGED_ADDR_CTRL (aarch64, glibc)
    60,         61,      // PR_PAC_SET_ENABLED_KEYS, PR_PAC_GET_ENABLED_KEYS (aarch64)
    63,         64,      // PR_SME_SET_VL, PR_SME_GET_VL (aarch64)
    65,         66,      // PR_SET_MDWE, PR_GET_MDWE: gives up writable code
    74,         75, 76,  // PR_GET_, PR_SET_, PR_LOCK_SHADOW_STACK_STATUS (aarch64, glibc)
    0x41555856,          // PR_GET_AUXV
    0x53564d41,          // PR_SET_VMA: names of memory areas (V8, Android's allocator, glibc)
});

}  // namespace capgate::lower::linux_abi
