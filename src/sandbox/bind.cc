#include "sandbox/bind.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "core/path.h"
#include "core/sensitive.h"
#include "sandbox/grants.h"
#include "sandbox/guard.h"
#include "sandbox/holes.h"
#include "sandbox/landlock.h"
#include "sandbox/rules.h"
#include "sandbox/tree.h"
#include "sandbox/trust_files.h"

namespace capgate::sandbox {
namespace {

using lower::PlanMount;
using Kind = PlanMount::Kind;

class Binder {
 public:
  Binder(const lower::Plan& plan, const Launcher& launcher)
      : plan_(plan),
        launcher_(launcher),
        spawns_(!plan.programs.empty()),
        holes_(plan, launcher.environment),
        grants_(plan, holes_, launcher.makes_missing_files),
        guard_(parts()) {}

  std::expected<Bound, Refusal> bind(const std::vector<std::string>& command) {
    server_ = TRY(find_program(command, launcher_.caller));
    for (const std::string& name : plan_.programs) {
      spawned_.push_back(TRY(find_spawned(name, launcher_.caller)));
    }
    if (auto done = set_environment(); !done) return std::unexpected(std::move(done).error());
    if (auto done = grants_.read(); !done) return std::unexpected(std::move(done).error());
    if (auto done = refuse_renamed_scopes(); !done) return std::unexpected(std::move(done).error());
    for (const PlanMount& mount : plan_.mounts) {
      if (mount.detail != "socket") continue;
      if (auto done = allow_bus(mount.target); !done) {
        return std::unexpected(std::move(done).error());
      }
    }
    for (const PlanMount& mount : plan_.mounts) {
      if (auto done = place(mount); !done) return std::unexpected(std::move(done).error());
    }
    if (grants_pending_) place_grants();
    for (const Program* program : programs()) {
      // Those of /usr and of granted directories are there already.
      for (const auto& [place, target] : program->links) tree_.symlink(place, target);
    }
    const Mounted mounted{.programs = programs(), .sockets = sockets_};
    if (auto done = add_rules(parts(), mounted); !done) {
      return std::unexpected(std::move(done).error());
    }
    if (auto done = place_package(); !done) return std::unexpected(std::move(done).error());
    name_sockets();
    if (launcher_.trust != nullptr) {
      auto done = place_trust(parts(), *launcher_.trust);
      if (!done) return std::unexpected(std::move(done).error());
    }

    bound_.program = server_.file;
    bound_.program_identity = server_.identity;
    bound_.arguments = server_.arguments;
    bound_.directory = choose_directory();
    for (const auto* notes : {&server_.notes, &grants_.notes}) {
      bound_.notes.insert(bound_.notes.end(), notes->begin(), notes->end());
    }
    if (state_.get() >= 0) bound_.kept.push_back(std::move(state_));
    bound_.mounts = std::move(tree_).take();
    return std::move(bound_);
  }

 private:
  using Done = std::expected<void, Refusal>;

  [[nodiscard]] Parts parts() { return {plan_, launcher_, holes_, grants_, tree_, bound_}; }

  // The compiler refused whole home directories and the like by their names in the policy.
  Done refuse_renamed_scopes() const {
    const std::string home = real_path(launcher_.caller.home);
    for (const auto& [path, grant] : grants_.by_path) {
      if (grant.path.links.empty() && home == launcher_.caller.home) continue;
      const auto why = core::refused_scope(path, home);
      if (!why) continue;
      return std::unexpected(
          Refusal{.message = format("{} cannot be granted: {}", escape_for_terminal(path), *why),
                  .help = "grant the directories in it that the server needs"});
    }
    return {};
  }

  // ---- mounts ---------------------------------------------------------------------------------

  [[nodiscard]] std::uint64_t writable_attributes() const {
    // With child processes, what the server can write it must not be able to run.
    return spawns_ ? MOUNT_ATTR_NOEXEC : 0;
  }

  Done place(const PlanMount& mount) {
    if (mount.origins != nullptr && std::exchange(grants_pending_, false)) place_grants();
    const std::string target = holes_.filled(mount.target);
    switch (mount.kind) {
      case Kind::bind: return place_bind(mount, target);
      case Kind::entries:
      case Kind::mask: return {};  // with the grants
      case Kind::programs: place_programs(target); return {};
      case Kind::tmpfs: return place_tmpfs(target, mount.size);
      case Kind::proc: tree_.proc(target, MOUNT_ATTR_NOEXEC); return {};
      case Kind::device: return place_device(target);
      case Kind::symlink: return place_link(mount, target);
      case Kind::file: return place_file(mount, target);
    }
    return {};
  }

  // The sandbox's user with another number, where a bus must know it.
  [[nodiscard]] std::string with_uid(std::string text) const {
    if (bound_.uid == 1000) return text;
    for (const std::string_view field : {"user:x:1000:1000:", "user:x:1000:"}) {
      const std::size_t at = text.find(field);
      if (at == std::string::npos) continue;
      const bool both = field.ends_with("1000:1000:");
      text.replace(at, field.size(),
                   both ? format("user:x:{0}:{0}:", bound_.uid) : format("user:x:{}:", bound_.uid));
      break;
    }
    return text;
  }

  // Nothing can be made in /proc: there, a file of ours is mounted over the kernel's.
  Done place_file(const PlanMount& mount, const std::string& target) {
    if (!core::is_at_or_below(target, "/proc")) {
      tree_.file(target, with_uid(holes_.filled(mount.detail)), 0444);
      return {};
    }
    std::string made;
    if (!mount.detail.empty()) {
      made = format("/etc/{}", target.substr(target.rfind('/') + 1));
      tree_.file(made, mount.detail, 0444);
    }
    tree_.cover_with(target, made);
    return {};
  }

  Done place_tmpfs(const std::string& target, std::uint64_t size) {
    if (target == holes_.home() && !launcher_.state.empty()) return place_state(target);
    const bool shared = target == "/tmp" || target == "/dev/shm";
    tree_.tmpfs(target, size, shared ? 01777 : 0700, writable_attributes());
    return {};
  }

  // HOME of a profile: a directory of the host that is kept from run to run. A server that was
  // given a directory above it could have put a link in the way.
  Done place_state(const std::string& target) {
    auto opened = open_host_path(launcher_.state);
    if (!opened) return std::unexpected(std::move(opened).error());
    tree_.bind(target, opened->resolved, opened->identity, writable_attributes(), "write");
    state_ = std::move(opened->fd);
    return {};
  }

  Done place_device(const std::string& target) {
    const auto identity = identify(target);
    if (!identity || identity->type != S_IFCHR) {
      return std::unexpected(Refusal{.message = format("{} is no device on this host", target),
                                     .help = "every Linux has it; see capgate doctor"});
    }
    tree_.bind(target, target, *identity, MOUNT_ATTR_NOEXEC);
    return {};
  }

  // /bin -> usr/bin, where the host has it so; an unmerged host has a directory there.
  Done place_link(const PlanMount& mount, const std::string& target) {
    const auto identity = identify(target);
    if (target.rfind('/') == 0 && identity && identity->is_directory()) {
      tree_.bind(target, target, *identity, MOUNT_ATTR_RDONLY);
    } else {
      tree_.symlink(target, mount.detail);
    }
    return {};
  }

  Done place_bind(const PlanMount& mount, const std::string& target) {
    if (mount.origins == nullptr) return place_base(mount, target);
    if (mount.detail == "socket") {
      for (const std::string_view hole : {"DISPLAY", "XDG_RUNTIME_DIR"}) {
        const std::string value = holes_.filled(format("${{{}}}", hole));
        if (auto done = require(mount.target, hole, value); !done) return done;
      }
      return place_socket(target);
    }
    if (target == "/etc/localtime" || target == "/usr/share/zoneinfo") {
      return place_base({.target = target, .if_present = true}, target);
    }
    return {};  // with the grants
  }

  // Part of the base system, which root owns: links are made again instead of followed.
  Done place_base(const PlanMount& mount, const std::string& target) {
    const auto identity = identify(target);
    if (!identity && mount.if_present) return {};
    if (!identity) {
      return std::unexpected(
          Refusal{.message = format("{}: {}", target, std::strerror(identity.error())),
                  .help = "the base system is incomplete; see capgate doctor"});
    }
    if (tree_.has(target) || tree_.is_host(target)) return {};
    if (identity->type == S_IFLNK) {
      tree_.symlink(target, read_link(AT_FDCWD, target));
    } else {
      tree_.bind(target, target, *identity, MOUNT_ATTR_RDONLY);
    }
    return {};
  }

  // A socket whose place the environment should have told.
  static Done require(std::string_view target, std::string_view hole, std::string_view value) {
    if (!target.contains(format("${{{}}}", hole)) || !value.empty()) return {};
    return std::unexpected(Refusal{.message = format("the variable {} says nothing useful", hole),
                                   .help = format("set {}, or remove the ipc capability", hole)});
  }

  // A message bus knows its clients by the user id that the kernel tells, and compares it with the
  // one that the client names.
  Done allow_bus(std::string_view socket) {
    if (!socket.ends_with("/bus") && !socket.ends_with("/system_bus_socket")) return {};
    if (launcher_.uid == 0) {
      return std::unexpected(
          Refusal{.message = "a message bus does not know the user of a sandbox that root starts",
                  .help = "start capgate as the user whose bus it is"});
    }
    bound_.uid = launcher_.uid;
    return {};
  }

  Done place_socket(const std::string& path) {
    // Variables of the caller may be part of it.
    if (!path.starts_with('/') || plain_path(path) != path) {
      return std::unexpected(
          Refusal{.message = format("{} is no absolute path", escape_for_terminal(path)),
                  .help = "check XDG_RUNTIME_DIR"});
    }
    auto opened = open_host_path(path);
    if (!opened) return std::unexpected(std::move(opened).error());
    if (opened->identity.type != S_IFSOCK) {
      return std::unexpected(
          Refusal{.message = format("{} is no socket", escape_for_terminal(path)),
                  .help = "start what listens there first"});
    }
    make_mount_point(path, opened->identity);
    tree_.bind(path, opened->resolved, opened->identity, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC,
               "socket");
    sockets_.push_back(path);
    bound_.kept.push_back(std::move(opened->fd));
    return {};
  }

  // The tree of an installed package, which nothing inside can change.
  Done place_package() {
    if (launcher_.package.empty()) return {};
    auto opened = open_host_path(launcher_.package);
    if (!opened) return std::unexpected(std::move(opened).error());
    const std::string place(package_place);
    if (!opened->identity.is_directory() || tree_.is_host(place)) {
      return std::unexpected(
          Refusal{.message = format("{} cannot be shown at {}",
                                    escape_for_terminal(launcher_.package), package_place),
                  .help = "grant no directory above it, and install the package again"});
    }
    tree_.bind(place, opened->resolved, opened->identity, MOUNT_ATTR_RDONLY, "read");
    bound_.landlock.push_back(
        {.path = place,
         .access = landlock_access({"read_file", "read_dir"}, launcher_.landlock_abi)});
    // Held while the server runs: whoever tidies the store up leaves the tree alone meanwhile.
    sys::Fd held(::open(opened->resolved.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (held.get() < 0 || ::syscall(SYS_flock, held.get(), LOCK_SH | LOCK_NB) != 0) {
      return std::unexpected(Refusal{
          .message = format("{}: {}", escape_for_terminal(launcher_.package), std::strerror(errno)),
          .help = "start again: it was being replaced"});
    }
    bound_.kept.push_back(std::move(held));
    bound_.kept.push_back(std::move(opened->fd));
    return {};
  }

  // In the order of their paths, so that a child lies on top of its parent.
  void place_grants() {
    place_implicit_grants();
    for (const auto& [path, grant] : grants_.by_path) {
      if (grant.is_named) bound_.watched.granted.insert(path);
    }
    tree_.reserve(grants_.by_path.size());
    for (auto& [path, grant] : grants_.by_path) {
      if (!grants_.is_covered(path, grant)) mount_grant(path, grant);
      guard_.keep_safe(path, grant);
    }
    bound_.kept.reserve(bound_.kept.size() + grants_.by_path.size());
    for (auto& [path, grant] : grants_.by_path) bound_.kept.push_back(std::move(grant.path.fd));
  }

  void mount_grant(const std::string& path, const Grant& grant) {
    for (const auto& [place, target] : grant.path.links) tree_.symlink(place, target);
    const std::uint64_t attributes =
        grant.writable ? writable_attributes() : std::uint64_t{MOUNT_ATTR_RDONLY};
    make_mount_point(path, grant.path.identity);
    tree_.bind(path, path, grant.path.identity, attributes, grant.rights);
  }

  // In the HOME of a profile, which is not the caller's, nothing is there to mount a grant on.
  // Its contents are the server's of earlier runs: a link there is not followed, and init, which
  // does not follow it either, then refuses the mount.
  void make_mount_point(const std::string& path, const Identity& identity) {
    const std::string& home = holes_.home();
    if (state_.get() < 0 || !launcher_.makes_missing_files || path == home ||
        !core::is_at_or_below(path, home)) {
      return;
    }
    const std::string below = path.substr(home.size() + 1);
    const auto parts = split(below, '/');
    sys::Fd at(::fcntl(state_.get(), F_DUPFD_CLOEXEC, 3));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string name(parts[i]);
      if (i + 1 == parts.size() && !identity.is_directory()) {
        const sys::Fd made(::openat(at.get(), name.c_str(),
                                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        return;
      }
      ::mkdirat(at.get(), name.c_str(), 0700);
      at = sys::Fd(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
      if (at.get() < 0) return;
    }
  }

  // Scripts and prefixes are read-only grants of files that the command line names.
  void place_implicit_grants() {
    for (const Program* program : programs()) {
      for (const auto& list : {program->prefixes, program->readable, program->executables}) {
        for (const std::string& path : list) {
          if (is_base(path)) continue;
          auto opened = open_host_path(path);
          if (opened && !grants_.has(path)) grants_.by_path[path].path = *std::move(opened);
        }
      }
    }
  }

  static bool is_base(std::string_view path) {
    return core::is_at_or_below(path, "/usr") || core::is_at_or_below(path, "/nix/store");
  }

  // ---- programs -------------------------------------------------------------------------------

  [[nodiscard]] std::vector<const Program*> programs() const {
    std::vector<const Program*> out{&server_};
    for (const Program& program : spawned_) out.push_back(&program);
    return out;
  }

  // A program directory holds the server's chain and declared programs, nothing else.
  void place_programs(const std::string& directory) {
    const auto identity = identify(directory);
    if (!identity || !identity->is_directory()) return;  // absent, or a link to another
    if (!fill_directory(directory)) tree_.cover(directory, *identity);
  }

  // False if nothing belongs there.
  bool fill_directory(const std::string& directory) {
    std::map<std::string, const std::string*> links;
    std::set<std::string> files;
    for (const Program* program : programs()) {
      for (const auto& list : {program->executables, program->readable}) {
        for (const std::string& path : list) {
          if (parent_of(path) == directory) files.insert(path);
        }
      }
      for (const auto& [place, target] : program->links) {
        if (parent_of(place) == directory) links.emplace(place, &target);
      }
    }
    if (files.empty() && links.empty() && !grants_.any_at_or_below(directory)) return false;
    tree_.tmpfs(directory, 4096, 0755, 0);
    for (const auto& [place, target] : links) tree_.symlink(place, *target);
    for (const std::string& path : files) {
      if (const auto identity = identify(path))
        tree_.bind(path, path, *identity, MOUNT_ATTR_RDONLY);
    }
    tree_.read_only_at_the_end(directory);
    return true;
  }

  // ---- Landlock, environment, directory -------------------------------------------------------

  // Secrets are no part of it: name_secrets().
  Done set_environment() {
    for (const auto& [name, value] : plan_.environment) {
      bound_.environment.push_back(format("{}={}", name, holes_.filled(value)));
    }
    for (const std::string& name : plan_.env_read) {
      const std::string* entry = holes_.variable(name);
      if (entry == nullptr) {
        return std::unexpected(
            Refusal{.message = format("the variable {} is not set", name),
                    .help = format("set {} for capgate, or remove the capability", name)});
      }
      bound_.environment.push_back(*entry);
    }
    return {};
  }

  void name_sockets() {
    for (const std::string& path : sockets_) {
      if (path.starts_with("/tmp/.X11-unix/X")) pass_on("DISPLAY");
      if (path.ends_with("/bus")) {
        bound_.environment.push_back("DBUS_SESSION_BUS_ADDRESS=unix:path=" + path);
      }
    }
  }

  void pass_on(std::string_view name) {
    if (const std::string* entry = holes_.variable(name)) {
      bound_.environment.push_back(*entry);
    }
  }

  // The caller's, if the server can see it.
  std::string choose_directory() const {
    const std::string& wanted = launcher_.caller.directory;
    for (std::string_view at = wanted; !at.empty(); at = parent_of(at)) {
      if (grants_.has(at) && tree_.has(at)) return wanted;
    }
    return holes_.home();
  }

  const lower::Plan& plan_;
  const Launcher& launcher_;
  bool spawns_;
  Holes holes_;
  Program server_;
  std::vector<Program> spawned_;
  std::vector<std::string> sockets_;
  bool grants_pending_ = true;
  sys::Fd state_;  // HOME of a profile
  Tree tree_;
  Bound bound_;
  Grants grants_;
  Guard guard_;
};

}  // namespace

std::expected<Bound, Refusal> bind(const lower::Plan& plan, const Launcher& launcher,
                                   const std::vector<std::string>& command) {
  if (launcher.landlock_abi < 1) {
    return std::unexpected(Refusal{
        .message = "this kernel has no Landlock",
        .help = "a kernel of 5.13 or later with landlock in its lsm= list; see capgate doctor"});
  }
  return Binder(plan, launcher).bind(command);
}

}  // namespace capgate::sandbox
