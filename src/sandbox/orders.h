// What the supervisor tells capgate-init: one block of memory without pointers, and the few
// messages that they exchange afterwards. Both sides are built from this file.
//
// The block is the bound Plan in its last form. init carries it out from the first mount to the
// last instruction of the filter and decides nothing; everything in it was decided, and can be
// printed, before.
//
// Freestanding: nothing but integers, since init has no library.
#pragma once

#include <cstdint>

namespace capgate::sandbox::orders {

inline constexpr std::uint64_t magic = 0x3165746167706163;  // "capgate1"

// Descriptors that init is started with: 0, 1 and 2 are the server's.
inline constexpr int orders_fd = 3;
inline constexpr int control_fd = 4;
inline constexpr int inner_fd = 5;  // only where ports are published: requests for sockets
inline constexpr int first_tree_fd = 6;

// Bytes of the block. A NUL follows them, so that they can be handed to the kernel.
struct Text {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

struct List {
  std::uint32_t offset = 0;
  std::uint32_t count = 0;
};

// The order of these is the order in which init takes them.
enum class Step : std::uint32_t {
  none,
  id_maps,       // in the supervisor's child, before init
  start_init,    //
  read_orders,   // from here on in init
  reset,         // signals, personality, umask, session
  loopback,      //
  network,       // routes, redirects and sockets of the capture, which are sent out
  host_name,     //
  private_tree,  // no mount of the sandbox reaches the host, and no later one of the host's comes
                 // in
  new_root,      //
  mounts,        //
  pivot,         //
  fork_server,   // from here on in the server's process
  program,       //
  limits,        //
  bounding_set,  //
  ids,           //
  capabilities,  //
  no_new_privs,  //
  landlock,      //
  descriptors,   //
  directory,     //
  read_back,     //
  seccomp,       //
  exec,          //
  init_drop,     // init itself, after the fork
  count,
};

enum class MountKind : std::uint32_t {
  directory,  // made in a private file system
  file,       // made there, with contents
  symlink,    // made there
  tmpfs,      //
  proc,       //
  bind,       // a host path, which must still be what the supervisor saw
  tree,       // a detached mount that the supervisor made: only root can, see launch.h
  pin,        // something of the sandbox mounted on itself, so that it cannot be renamed away
  cover,      // an empty directory or file over something, which must still be what was seen
  attributes  // added to a mount once its contents are in place
};

inline constexpr std::uint32_t optional = 1;    // a source that went away meanwhile is left out
inline constexpr std::uint32_t in_private = 2;  // the target's parents were all made by init

struct Mount {
  MountKind kind = MountKind::directory;
  std::uint32_t mode = 0;  // of what is made; of binds, pins and covers the type that was seen
  Text target;             // absolute, without symbolic links
  Text source;             // host path, link target or file contents
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;        // tmpfs: bytes
  std::uint64_t attributes = 0;  // MOUNT_ATTR_*
  std::int32_t fd = -1;          // tree
  std::uint32_t flags = 0;       // of the two above
  std::uint64_t access = 0;      // of a bind or a tree: what Landlock allows below it; 0: no rule
};

// Of what is no mount of its own.
struct LandlockRule {
  Text path;
  std::uint64_t access = 0;
  std::uint32_t index = 0;  // in the bound plan: for a report of a failure
  std::uint32_t unused = 0;
};

struct Limit {
  std::uint32_t resource = 0;
  std::uint32_t unused = 0;
  std::uint64_t value = 0;  // soft and hard
};

// One send() of complete netlink messages, the last of which asks for an acknowledgement.
struct NetlinkMessage {
  std::uint32_t protocol = 0;
  std::uint32_t flags = 0;
  Text bytes;
};

struct SocketOption {
  std::int32_t level = 0;
  std::int32_t name = 0;
  std::int32_t value = 0;
};

// A socket that is made inside and sent out.
struct Socket {
  std::uint32_t domain = 0;
  std::uint32_t type = 0;
  std::uint32_t protocol = 0;
  std::uint32_t backlog = 0;  // 0: it does not listen
  std::uint32_t flags = 0;
  Text address;  // struct sockaddr
  List options;  // SocketOption
  List filter;   // struct sock_filter, in force before the socket is bound
};

// Of netlink messages and sockets.
inline constexpr std::uint32_t may_lack = 1;   // IPv6 is off: left out, and that is told
inline constexpr std::uint32_t with_ipv6 = 2;  // left out where IPv6 is off
inline constexpr std::uint32_t instead = 4;    // only where the socket before it was left out

// Names in a private file system of this size: a file with contents takes a page of it, a directory
// or a link takes none. The smallest ones hold the names of programs.
constexpr std::uint64_t tmpfs_inodes(std::uint64_t size) { return size / 2048 + 1024; }

// Where no cgroup counts memory: the text of tcp_rmem and of tcp_wmem. The last number is what a
// TCP socket grows to by itself, here twice what other sockets start with.
inline constexpr std::uint64_t most_tcp_buffer = 425'984;
inline constexpr char tcp_receive_buffers[] = "4096 131072 425984";
inline constexpr char tcp_send_buffers[] = "4096 16384 425984";

struct Header {
  std::uint64_t magic = 0;
  std::uint32_t size = 0;       // of the whole block
  std::uint32_t fail_step = 0;  // tests: the step that pretends to fail; 0: none
  List mounts;                  // Mount
  List landlock_rules;          // LandlockRule
  List limits;                  // Limit
  List arguments;               // Text
  List environment;             // Text
  List filter;                  // struct sock_filter
  List netlink;                 // NetlinkMessage
  List sockets;                 // Socket
  Text program;
  std::uint64_t program_device = 0;
  std::uint64_t program_inode = 0;
  Text directory;
  Text host_name;
  std::uint32_t uid = 0;  // inside
  std::uint32_t gid = 0;
  std::uint32_t drop_groups = 0;  // 1: the id map allows setgroups
  std::uint32_t root_inodes = 0;
  std::uint32_t root_bytes = 0;
  std::uint32_t listen = 0;       // 1: the filter wants a listener, which is sent to the supervisor
  std::uint32_t has_network = 0;  // 1: the sockets are sent, and the server waits for `go`
  std::uint32_t inner_sockets = 0;  // 1: inner_fd is there
  std::uint32_t landlock_attribute_size = 0;
  std::uint32_t sends_covers = 0;   // 1: somebody makes mounts after init (keeper.h)
  std::uint32_t bound_buffers = 0;  // 1: the bounds above, which are reported
  std::uint32_t unused = 0;
  std::uint64_t landlock_handled = 0;
  std::uint64_t landlock_scoped = 0;
  std::uint64_t token[3] = {};  // the exec token, as execve's arguments 3, 4 and 5
};

// From init, or from the server's process before it runs the server.
struct Report {
  enum class Kind : std::uint32_t {
    failed,
    exited,
    listener,
    socket,         // `index` of Header::sockets, with its descriptor
    network_ready,  // after the last of them; `value` 1: with IPv6
    cover,          // what covers are made of, once the mounts are: `index` 0 a directory, 1 a file
    buffers,        // `value` 0: TCP's buffers are bounded, else the errno
  };
  Kind kind = Kind::failed;
  Step step = Step::none;
  std::int32_t value = 0;   // errno, or the wait status
  std::uint32_t index = 0;  // of the mount, the rule, or the message or (after those) the socket
};

// From the supervisor. The end of the stream ends the sandbox.
struct Command {
  enum class Kind : std::uint32_t {
    signal,  // send it to the server
    go,      // somebody accepts on the sockets: the server may run
  };
  Kind kind = Kind::signal;
  std::uint32_t signal = 0;
};

}  // namespace capgate::sandbox::orders
