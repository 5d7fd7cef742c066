#include "sandbox/launch.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/format.h"
#include "base/text.h"
#include "sandbox/doctor.h"
#include "sys/file.h"

extern "C" {
extern const char capgate_init_image[];
extern const char capgate_init_image_end[];
}

namespace capgate::sandbox {
namespace {

// Ids that no distribution and no range of subordinate ids gives to anyone.
constexpr std::uint32_t first_unowned_id = 1'879'048'192;

std::unexpected<Refusal> refuse(std::string_view what, int error, std::string help = {}) {
  if (help.empty()) help = "see capgate doctor";
  return std::unexpected(
      Refusal{.message = format("{}: {}", what, std::strerror(error)), .help = std::move(help)});
}

// ---- in the child -------------------------------------------------------------------------------

struct Child {
  const HostUser& user;
  const Trees& trees;
  const Placement& placement;
  int control;
  int errors;
  int orders;
  int init;
  const LaunchDetails& details;
};

[[noreturn]] void give_up(const Child& child, orders::Step step) {
  const orders::Report report{.kind = orders::Report::Kind::failed, .step = step, .value = errno};
  (void)!::write(child.control, &report, sizeof(report));
  ::_exit(125);
}

bool write_file(const char* path, std::string_view text) {
  const sys::Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file.get() >= 0 &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool write_id_maps(const HostUser& user) {
  const std::string uids = format("{} {} 1\n", user.inside, user.uid);
  const std::string gids = format("{} {} 1\n", user.inside, user.gid);
  return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", uids) &&
         write_file("/proc/self/gid_map", gids);
}

// What the sandbox's user namespace may have of the kernel's watches on files, which all programs
// of the user share: a quarter of what there is.
bool limit_watches() {
  for (const std::string_view what : {"instances", "watches"}) {
    const auto all = sys::read_file(format("/proc/sys/fs/inotify/max_user_{}", what), 64);
    if (!all) return false;
    const std::uint64_t share = std::strtoull(all->c_str(), nullptr, 10) / 4;
    if (!write_file(format("/proc/sys/user/max_inotify_{}", what).c_str(), format("{}", share))) {
      return false;
    }
  }
  return true;
}

// An exec by a user that is not 0 drops every capability that is not ambient.
bool keep_capabilities_over_exec() {
  constexpr std::array<unsigned, 7> needed = {
      CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW, CAP_NET_BIND_SERVICE,
      CAP_SETPCAP,   CAP_SETUID,    CAP_SETGID};
  __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  for (const unsigned capability : needed) {
    data[capability / 32].effective |= 1U << (capability % 32);
  }
  for (auto& half : data) half.permitted = half.inheritable = half.effective;
  if (::syscall(SYS_capset, &head, data) != 0) return false;
  return std::ranges::all_of(needed, [](unsigned capability) {
    return ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0;
  });
}

// Moves descriptors to the numbers that init knows. First out of each other's way.
bool place_descriptors(const Child& child) {
  std::vector<std::pair<int, int>> wanted = {{child.errors, STDERR_FILENO},
                                             {child.orders, orders::orders_fd},
                                             {child.control, orders::control_fd}};
  const LaunchDetails& details = child.details;
  for (const auto& [from, to] :
       {std::pair{details.inner_sockets, orders::inner_fd}, std::pair{details.input, STDIN_FILENO},
        std::pair{details.output, STDOUT_FILENO}}) {
    if (from >= 0) wanted.emplace_back(from, to);
  }
  int next = orders::first_tree_fd;
  for (const sys::Fd& tree : child.trees.fds) wanted.emplace_back(tree.get(), next++);
  const int init_fd = next;
  wanted.emplace_back(child.init, init_fd);
  for (auto& [from, to] : wanted) {
    from = ::fcntl(from, F_DUPFD_CLOEXEC, init_fd + 1);
    if (from < 0) return false;
  }
  for (const auto& [from, to] : wanted) {
    if (::dup3(from, to, to == init_fd ? O_CLOEXEC : 0) < 0) return false;
  }
  return ::syscall(SYS_close_range, init_fd + 1, ~0U, 0) == 0;
}

// Tests make one of these steps fail.
void begin(const Child& child, orders::Step step) {
  if (child.details.fail_step != step) return;
  errno = EIO;
  give_up(child, step);
}

[[noreturn]] void run_child(const Child& child) {
  for (const int procs : child.placement.cgroup_procs) {
    if (::write(procs, "0", 1) != 1) give_up(child, orders::Step::limits);
  }
  begin(child, orders::Step::id_maps);
  // A supervisor that holds secrets is not dumpable, nor is one that changed its ids; but then the
  // maps are root's to write. None of its secrets is in this copy of its memory.
  if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) give_up(child, orders::Step::id_maps);
  if (!write_id_maps(child.user)) give_up(child, orders::Step::id_maps);
  const std::uint32_t id = child.user.inside;
  if (::syscall(SYS_setresgid, id, id, id) != 0 || ::syscall(SYS_setresuid, id, id, id) != 0) {
    give_up(child, orders::Step::id_maps);
  }
  if (!limit_watches()) give_up(child, orders::Step::id_maps);
  begin(child, orders::Step::start_init);
  if (!keep_capabilities_over_exec()) give_up(child, orders::Step::start_init);
  const int init_fd = orders::first_tree_fd + static_cast<int>(child.trees.fds.size());
  if (!place_descriptors(child)) give_up(child, orders::Step::start_init);
  const char* const arguments[] = {"capgate-init", nullptr};
  const char* const environment[] = {nullptr};
  ::syscall(SYS_execveat, init_fd, "", arguments, environment, AT_EMPTY_PATH);
  const orders::Report report{.step = orders::Step::start_init, .value = errno};
  (void)!::write(orders::control_fd, &report, sizeof(report));
  ::_exit(125);
}

// ---- started by root ----------------------------------------------------------------------------

bool owns_account(std::uint32_t uid) {
  const auto accounts = sys::read_file("/etc/passwd", 16U << 20U);
  if (!accounts) return false;
  const std::string wanted = std::to_string(uid);
  return std::ranges::any_of(split(*accounts, '\n'), [&](std::string_view line) {
    const auto fields = split(line, ':');
    return fields.size() > 2 && fields[2] == wanted;
  });
}

// Between these two the supervisor is the sandbox's user, so that the namespaces belong to it.
bool leave_root(const HostUser& user) {
  return ::setgroups(0, nullptr) == 0 && ::syscall(SYS_setresgid, -1, user.gid, -1) == 0 &&
         ::syscall(SYS_setresuid, -1, user.uid, -1) == 0;
}
bool return_to_root() {
  return ::syscall(SYS_setresuid, -1, 0, -1) == 0 && ::syscall(SYS_setresgid, -1, 0, -1) == 0;
}

// The signal that this process gets when its parent ends. The kernel forgets it when the ids
// change.
class ParentDeathSignal {
 public:
  ParentDeathSignal() : parent_(::getppid()) {
    if (::prctl(PR_GET_PDEATHSIG, &signal_, 0, 0, 0) != 0) signal_ = 0;
  }

  // A parent that ended meanwhile sent none.
  [[nodiscard]] bool set_again() const {
    if (signal_ == 0) return true;
    if (::prctl(PR_SET_PDEATHSIG, signal_, 0, 0, 0) != 0) return false;
    return ::getppid() == parent_ || ::raise(signal_) == 0;
  }

 private:
  int signal_ = 0;
  pid_t parent_;
};

// A user namespace whose only purpose is its map: `owner` on disk is the sandbox's user.
std::expected<sys::Fd, int> owner_map(const Identity& owner, const HostUser& user) {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return std::unexpected(errno);
  const sys::Fd read_end(ready[0]);
  sys::Fd write_end(ready[1]);
  clone_args args{};
  args.flags = CLONE_NEWUSER;
  args.exit_signal = SIGCHLD;
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
  if (pid < 0) return std::unexpected(errno);
  if (pid == 0) {
    ::close(ready[1]);
    char byte = 0;
    (void)!::read(ready[0], &byte, 1);  // until the parent has what it wants
    ::_exit(0);
  }
  const std::string base = format("/proc/{}", pid);
  const bool mapped =
      write_file((base + "/uid_map").c_str(), format("{} {} 1\n", owner.uid, user.uid)) &&
      write_file((base + "/gid_map").c_str(), format("{} {} 1\n", owner.gid, user.gid));
  int error = errno;
  sys::Fd space(::open((base + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (mapped && space.get() < 0) error = errno;
  write_end = sys::Fd();
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!mapped || space.get() < 0) return std::unexpected(error);
  return space;
}

// Each process id has a number of its own.
HostUser choose_user(std::uint32_t first) {
  const uid_t uid = ::getuid();
  if (uid != 0) return {.uid = uid, .gid = ::getgid(), .leaves_root = false};
  std::uint32_t unowned = first + static_cast<std::uint32_t>(::getpid());
  while (owns_account(unowned)) ++unowned;
  return {.uid = unowned, .gid = unowned, .leaves_root = true};
}

}  // namespace

HostUser choose_host_user() { return choose_user(first_unowned_id); }

HostUser choose_broker_user() {
  constexpr std::uint32_t most_processes = 1U << 22U;
  return choose_user(first_unowned_id + 2 * most_processes);
}

bool leave_root_for_good(const HostUser& user) {
  return ::setgroups(0, nullptr) == 0 &&
         ::syscall(SYS_setresgid, user.gid, user.gid, user.gid) == 0 &&
         ::syscall(SYS_setresuid, user.uid, user.uid, user.uid) == 0;
}

std::string_view init_program() {
  return {capgate_init_image,
          static_cast<std::size_t>(capgate_init_image_end - capgate_init_image)};
}

std::expected<sys::Fd, int> sealed_file(const char* name, std::string_view contents, bool runs) {
  constexpr unsigned noexec_seal = 0x8;
  constexpr unsigned exec = 0x10;
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  sys::Fd file(::memfd_create(name, flags | (runs ? exec : noexec_seal)));
  if (file.get() < 0 && errno == EINVAL) file = sys::Fd(::memfd_create(name, flags));
  if (file.get() < 0) return std::unexpected(errno);
  if (auto written = sys::write_all(file.get(), contents); !written) {
    return std::unexpected(written.error().err);
  }
  constexpr int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (::fcntl(file.get(), F_ADD_SEALS, seals) != 0) return std::unexpected(errno);
  return file;
}

std::expected<Trees, Refusal> make_trees(const Bound& bound, const HostUser& user) {
  Trees trees;
  if (!user.leaves_root) return trees;
  trees.numbers.assign(bound.mounts.size(), -1);
  std::map<std::pair<std::uint32_t, std::uint32_t>, sys::Fd> maps;
  for (std::size_t i = 0; i < bound.mounts.size(); ++i) {
    const BoundMount& mount = bound.mounts[i];
    if (!mount.owned || mount.kind != orders::MountKind::bind) continue;
    const std::string shown = escape_for_terminal(mount.source);
    const sys::Fd source(::open(mount.source.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
    const auto identity = source.get() < 0 ? std::unexpected(errno) : identify(source.get());
    if (!identity || *identity != mount.identity) {
      return std::unexpected(
          Refusal{.message = format("{} changed while it was being granted", shown),
                  .help = "start again when nothing moves it"});
    }
    sys::Fd& map = maps[{identity->uid, identity->gid}];
    if (map.get() < 0) {
      auto made = owner_map(*identity, user);
      if (!made) return refuse(format("cannot map the owner of {}", shown), made.error());
      map = *std::move(made);
    }
    sys::Fd tree(static_cast<int>(
        ::syscall(SYS_open_tree, source.get(), "",
                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE)));
    if (tree.get() < 0) return refuse(format("cannot mount {}", shown), errno);
    mount_attr attributes{};
    attributes.attr_set = mount.attributes | MOUNT_ATTR_IDMAP;
    attributes.propagation = MS_PRIVATE;  // the source may be shared, as systemd has it
    attributes.userns_fd = static_cast<std::uint64_t>(map.get());
    if (::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                  sizeof(attributes)) != 0) {
      return refuse(format("cannot map the owner of {}", shown), errno,
                    "its file system must support idmapped mounts; or start capgate as its owner");
    }
    trees.numbers[i] = orders::first_tree_fd + static_cast<int>(trees.fds.size());
    trees.fds.push_back(std::move(tree));
  }
  return trees;
}

std::expected<Sandbox, Refusal> launch(const std::string& orders, const HostUser& user,
                                       const Trees& trees, const Placement& placement,
                                       const LaunchDetails& details) {
  auto init = sealed_file("capgate-init", init_program(), true);
  if (!init) return refuse("cannot make capgate-init", init.error());
  auto block = sealed_file("capgate-orders", orders, false);
  if (!block) return refuse("cannot make the orders", block.error());

  int control[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) {
    return refuse("cannot make the control socket", errno);
  }
  Sandbox sandbox;
  sandbox.control = sys::Fd(control[0]);
  const sys::Fd inner(control[1]);
  int errors[2];
  if (::pipe2(errors, O_CLOEXEC) != 0) return refuse("cannot make a pipe", errno);
  sandbox.errors = sys::Fd(errors[0]);
  const sys::Fd errors_inner(errors[1]);

  const ParentDeathSignal death;
  if (user.leaves_root && !leave_root(user)) return refuse("cannot leave root", errno);
  int pidfd = -1;
  clone_args args{};
  // The parent waits until init runs.
  args.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
               CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_PIDFD | CLONE_VFORK;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (placement.cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(placement.cgroup);
  }
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
  if (pid == 0) {
    run_child({user, trees, placement, inner.get(), errors_inner.get(), block->get(), init->get(),
               details});
  }
  const int error = errno;
  if (user.leaves_root && (!return_to_root() || !death.set_again())) {
    return refuse("cannot return to root", errno);
  }
  if (pid < 0) {
    return refuse("cannot make the namespaces", error,
                  explain_launch_failure("clone3", error, read_host()));
  }
  sandbox.pid = pid;
  sandbox.init = sys::Fd(pidfd);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return sandbox;
}

}  // namespace capgate::sandbox
