#include "sandbox/bind.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/mount.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/path.h"
#include "core/sensitive.h"
#include "sandbox/landlock.h"
#include "sandbox/tree.h"

namespace capgate::sandbox {
namespace {

using lower::PlanMount;
using Kind = PlanMount::Kind;

std::string_view parent_of(std::string_view path) { return path.substr(0, path.rfind('/')); }

// Fills ${NAME}. Only names of holes can stand in a Plan's texts.
std::string fill(std::string text, std::string_view name, std::string_view value) {
  const std::string hole = format("${{{}}}", name);
  for (std::size_t at = text.find(hole); at != std::string::npos; at = text.find(hole)) {
    text.replace(at, hole.size(), value);
  }
  return text;
}

const std::string* find_variable(const std::vector<std::string>& environment,
                                 std::string_view name) {
  const auto found = std::ranges::find_if(environment, [&](const std::string& entry) {
    return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
  });
  return found == environment.end() ? nullptr : &*found;
}

// Where the Plan puts the private HOME.
std::string home_of(const lower::Plan& plan) {
  const auto home = std::ranges::find(
      plan.environment, "HOME", [](const auto& entry) { return std::string_view(entry.first); });
  return home == plan.environment.end() ? "/home/user" : home->second;
}

// A grant with its holes filled: one path and the strongest rights that any grant gives it.
struct Grant {
  HostPath path;
  bool writable = false;
};

class Binder {
 public:
  Binder(const lower::Plan& plan, const Launcher& launcher)
      : plan_(plan), launcher_(launcher), spawns_(!plan.programs.empty()), home_(home_of(plan)) {}

  std::expected<Bound, Refusal> bind(const std::vector<std::string>& command) {
    server_ = TRY(find_program(command, launcher_.caller));
    for (const std::string& name : plan_.programs) {
      spawned_.push_back(TRY(find_spawned(name, launcher_.caller)));
    }
    if (auto done = set_environment(); !done) return std::unexpected(std::move(done).error());
    if (auto done = read_grants(); !done) return std::unexpected(std::move(done).error());
    for (const PlanMount& mount : plan_.mounts) {
      if (auto done = place(mount); !done) return std::unexpected(std::move(done).error());
    }
    if (grants_pending_) place_grants();
    for (const Program* program : programs()) {
      // Those of /usr and of granted directories are there already.
      for (const auto& [place, target] : program->links) tree_.symlink(place, target);
    }
    if (auto done = allow(); !done) return std::unexpected(std::move(done).error());
    name_sockets();

    bound_.program = server_.file;
    bound_.program_identity = server_.identity;
    bound_.arguments = server_.arguments;
    bound_.directory = choose_directory();
    for (const std::string& note : server_.notes) bound_.notes.push_back(note);
    bound_.mounts = std::move(tree_).take();
    return std::move(bound_);
  }

 private:
  using Done = std::expected<void, Refusal>;

  std::string filled(const std::string& text) const {
    std::string out = fill(text, "HOME", home_);
    if (out.contains("${DISPLAY}")) out = fill(out, "DISPLAY", display_number());
    if (out.contains("${XDG_RUNTIME_DIR}")) {
      out = fill(out, "XDG_RUNTIME_DIR", value_of("XDG_RUNTIME_DIR"));
    }
    return out;
  }

  std::string value_of(std::string_view name) const {
    const std::string* entry = find_variable(launcher_.environment, name);
    return entry == nullptr ? "" : entry->substr(name.size() + 1);
  }

  // ":1.0" and "unix:1" are display 1.
  std::string display_number() const {
    const std::string display = value_of("DISPLAY");
    const std::size_t colon = display.rfind(':');
    if (colon == std::string::npos) return "";
    const std::size_t begin = colon + 1;
    return display.substr(begin, display.find('.', begin) - begin);
  }

  // ---- grants ---------------------------------------------------------------------------------

  // All of them before anything is mounted: a grant that another one covers must not be mounted on
  // top of it with less.
  Done read_grants() {
    for (const PlanMount& mount : plan_.mounts) {
      if (mount.origins == nullptr) continue;
      const bool writable =
          mount.detail == "write" || mount.detail == "create" || mount.detail == "delete";
      if (mount.kind == Kind::entries) {
        if (auto done = read_entries(mount.target, writable); !done) return done;
      } else if (mount.kind == Kind::bind && mount.detail != "socket" &&
                 !core::is_at_or_below(mount.target, "/usr/share/zoneinfo")) {
        if (auto done = read_grant(filled(mount.target), writable, mount.directory); !done) {
          return done;
        }
      }
    }
    return {};
  }

  Done read_grant(const std::string& path, bool writable, bool directory) {
    auto opened = open_host_path(path);
    if (opened && directory && !opened->identity.is_directory()) {
      return std::unexpected(
          Refusal{.message = format("{} is no directory", escape_for_terminal(path)),
                  .help = "grant a file without /**"});
    }
    if (!opened && writable && !directory && !identify(path)) {
      if (!launcher_.makes_missing_files) {
        bound_.notes.push_back(
            format("fs: {} is missing and would be made empty", escape_for_terminal(path)));
        return {};
      }
      if (!make_empty_file(path)) return std::unexpected(std::move(opened).error());
      opened = open_host_path(path);
    }
    if (!opened) return std::unexpected(std::move(opened).error());
    return keep_grant(*std::move(opened), writable);
  }

  Done keep_grant(HostPath opened, bool writable) {
    const std::uint32_t type = opened.identity.type;
    if (type != S_IFREG && type != S_IFDIR) {
      return std::unexpected(Refusal{.message = format("{} is neither a file nor a directory",
                                                       escape_for_terminal(opened.resolved)),
                                     .help = "a socket is granted with ipc:connect:unix:PATH"});
    }
    for (const auto& [place, target] : opened.links) {
      bound_.notes.push_back(format("fs: the link {} -> {} was followed",
                                    escape_for_terminal(place), escape_for_terminal(target)));
    }
    std::string key = opened.resolved;
    Grant& grant = grants_[std::move(key)];
    grant.writable |= writable;
    if (grant.path.fd.get() < 0) grant.path = std::move(opened);
    return {};
  }

  bool make_empty_file(const std::string& path) {
    const sys::Fd made(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (made.get() < 0) return false;
    bound_.notes.push_back(
        format("fs: {} was missing and has been made empty", escape_for_terminal(path)));
    return true;
  }

  // "/dir/*.md": what matches now. Links and special files are no grant.
  Done read_entries(const std::string& pattern, bool writable) {
    const std::string directory(parent_of(pattern));
    const std::string glob(pattern.substr(directory.size() + 1));
    auto opened = open_host_path(directory.empty() ? "/" : directory);
    if (!opened) return std::unexpected(std::move(opened).error());
    const std::string readable = format("/proc/self/fd/{}", opened->fd.get());
    DIR* listing = ::opendir(readable.c_str());
    if (listing == nullptr) {
      return std::unexpected(Refusal{
          .message =
              format("cannot list {}: {}", escape_for_terminal(directory), std::strerror(errno)),
          .help = "grant its entries by name"});
    }
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(listing)) {
      const std::string name = entry->d_name;
      if (name == "." || name == ".." || ::fnmatch(glob.c_str(), entry->d_name, FNM_PERIOD) != 0) {
        continue;
      }
      names.push_back(name);
    }
    ::closedir(listing);
    std::ranges::sort(names);
    for (const std::string& name : names) {
      auto entry = open_host_path(format("{}/{}", opened->resolved, name));
      const bool usable =
          entry && (entry->identity.type == S_IFREG || entry->identity.is_directory());
      if (!usable) {
        bound_.notes.push_back(
            format("fs: {} matches, but is no file or directory, or cannot be opened",
                   escape_for_terminal(format("{}/{}", directory, name))));
        continue;
      }
      globbed_[pattern].push_back(entry->resolved);
      if (auto done = keep_grant(*std::move(entry), writable); !done) return done;
    }
    bound_.notes.push_back(format("fs: {} stands for {} entries; later ones are not covered",
                                  escape_for_terminal(pattern), names.size()));
    return {};
  }

  // ---- mounts ---------------------------------------------------------------------------------

  [[nodiscard]] std::uint64_t writable_attributes() const {
    // With child processes, what the server can write it must not be able to run.
    return spawns_ ? MOUNT_ATTR_NOEXEC : 0;
  }

  Done place(const PlanMount& mount) {
    if (mount.origins != nullptr && std::exchange(grants_pending_, false)) place_grants();
    const std::string target = filled(mount.target);
    switch (mount.kind) {
      case Kind::bind: return place_bind(mount, target);
      case Kind::entries:
      case Kind::mask: return {};  // with the grants
      case Kind::programs: place_programs(target); return {};
      case Kind::tmpfs: place_tmpfs(target, mount.size); return {};
      case Kind::proc: tree_.proc(target, MOUNT_ATTR_NOEXEC); return {};
      case Kind::device: return place_device(target);
      case Kind::symlink: return place_link(mount, target);
      case Kind::file: return place_file(mount, target);
    }
    return {};
  }

  // Nothing can be made in /proc: there, a file of ours is mounted over the kernel's.
  Done place_file(const PlanMount& mount, const std::string& target) {
    if (!core::is_at_or_below(target, "/proc")) {
      tree_.file(target, filled(mount.detail), 0444);
      return {};
    }
    const std::string made = format("/etc/{}", target.substr(target.rfind('/') + 1));
    tree_.file(made, mount.detail, 0444);
    tree_.cover_with(target, made);
    return {};
  }

  void place_tmpfs(const std::string& target, std::uint64_t size) {
    if (target == home_ && !launcher_.state.empty()) return place_state(target);
    const bool shared = target == "/tmp" || target == "/dev/shm";
    tree_.tmpfs(target, size, shared ? 01777 : 0700, writable_attributes());
  }

  // HOME of a profile: a directory of the host that is kept from run to run.
  void place_state(const std::string& target) {
    const sys::Fd directory(::open(launcher_.state.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto identity = identify(directory.get());
    if (!identity) return;
    tree_.bind(target, launcher_.state, *identity, writable_attributes(), true);
    state_is_home_ = true;
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
    if (mount.detail == "socket") return place_socket(target);
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
      std::string link(4096, '\0');
      const ssize_t size = ::readlink(target.c_str(), link.data(), link.size());
      link.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
      tree_.symlink(target, std::move(link));
    } else {
      tree_.bind(target, target, *identity, MOUNT_ATTR_RDONLY);
    }
    return {};
  }

  Done place_socket(const std::string& path) {
    auto opened = open_host_path(path);
    if (!opened) return std::unexpected(std::move(opened).error());
    if (opened->identity.type != S_IFSOCK) {
      return std::unexpected(
          Refusal{.message = format("{} is no socket", escape_for_terminal(path)),
                  .help = "start what listens there first"});
    }
    tree_.bind(path, opened->resolved, opened->identity, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC,
               true);
    sockets_.push_back(path);
    bound_.kept.push_back(std::move(opened->fd));
    return {};
  }

  // In the order of their paths, so that a child lies on top of its parent.
  void place_grants() {
    place_implicit_grants();
    for (auto& [path, grant] : grants_) {
      if (is_covered(path, grant.writable)) continue;
      for (const auto& [place, target] : grant.path.links) tree_.symlink(place, target);
      const std::uint64_t attributes =
          grant.writable ? writable_attributes() : std::uint64_t{MOUNT_ATTR_RDONLY};
      make_mount_point(path, grant.path.identity);
      tree_.bind(path, path, grant.path.identity, attributes, true);
      mask(path);
      if (!grant.path.identity.is_directory()) continue;
      hide_secrets(path, grant.path.fd.get());
      if (grant.writable) protect(path, grant.path.fd.get());
    }
    for (auto& [path, grant] : grants_) bound_.kept.push_back(std::move(grant.path.fd));
  }

  // In the HOME of a profile, which is not the caller's, nothing is there to mount a grant on.
  void make_mount_point(const std::string& path, const Identity& identity) {
    if (!state_is_home_ || !core::is_at_or_below(path, home_) || path == home_) return;
    std::string at = launcher_.state;
    for (const std::string_view part : split(path.substr(home_.size() + 1), '/')) {
      at += '/';
      at += part;
      const bool is_last = at.size() == launcher_.state.size() + path.size() - home_.size();
      if (!is_last || identity.is_directory()) {
        ::mkdir(at.c_str(), 0700);
      } else {
        const sys::Fd made(::open(at.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      }
    }
  }

  // Scripts and prefixes are read-only grants of files that the command line names.
  void place_implicit_grants() {
    for (const Program* program : programs()) {
      for (const auto& list : {program->prefixes, program->readable, program->executables}) {
        for (const std::string& path : list) {
          if (is_base(path)) continue;
          auto opened = open_host_path(path);
          if (opened && !grants_.contains(path)) grants_[path].path = *std::move(opened);
        }
      }
    }
  }

  static bool is_base(std::string_view path) {
    return core::is_at_or_below(path, "/usr") || core::is_at_or_below(path, "/nix/store");
  }

  // By a directory above it that gives at least as much.
  [[nodiscard]] bool is_covered(std::string_view path, bool writable) const {
    for (std::string_view above = parent_of(path); !above.empty(); above = parent_of(above)) {
      const auto found = grants_.find(above);
      if (found != grants_.end() && (found->second.writable || !writable)) return true;
    }
    return false;
  }

  // Files that a program of the host runs later stay as they are. Where they do not exist they can
  // be made: nothing of ours is left on the host, and what appeared is told at the end.
  void protect(const std::string& base, int directory) {
    for (const std::string& name : plan_.protected_names) {
      protect_one(base, directory, base + "/" + name);
    }
    for (const core::ReadOnlyPath& path : core::startup_below(base, launcher_.caller.home)) {
      protect_one(base, directory, path.path);
    }
  }

  void protect_one(const std::string& base, int directory, const std::string& path) {
    if (grants_.contains(path)) return;
    const auto identity = identify_at(directory, path.substr(base.size() + 1));
    if (!identity) {
      bound_.not_held.push_back(path);
      return;
    }
    if (identity->type == S_IFLNK) {
      bound_.notes.push_back(
          format("fs: {} is a link and is not protected", escape_for_terminal(path)));
      return;
    }
    pin_ancestors(base, directory, path);
    if (!tree_.has(path)) tree_.pin(path, *identity, MOUNT_ATTR_RDONLY);
  }

  // A directory that is a mount of its own cannot be renamed or removed from inside.
  void pin_ancestors(const std::string& base, int directory, std::string_view path) {
    for (std::size_t slash = path.find('/', base.size() + 1); slash != std::string_view::npos;
         slash = path.find('/', slash + 1)) {
      const std::string ancestor(path.substr(0, slash));
      const auto identity = identify_at(directory, ancestor.substr(base.size() + 1));
      if (identity && !tree_.has(ancestor)) tree_.pin(ancestor, *identity, 0);
    }
  }

  // Files of a workspace that usually hold secrets, at its root. Nothing walks a granted tree.
  void hide_secrets(const std::string& base, int directory) {
    for (const std::string& name : plan_.hidden_names) {
      const std::string path = base + "/" + name;
      const auto identity = identify_at(directory, name);
      if (!identity || identity->type == S_IFLNK || grants_.contains(path) || tree_.has(path)) {
        continue;
      }
      tree_.cover(path, *identity);
      bound_.masked.push_back(path);
    }
  }

  void mask(const std::string& base) {
    for (const PlanMount& mount : plan_.mounts) {
      if (mount.kind != Kind::mask) continue;
      const std::string path = filled(mount.target);
      if (path == base || !core::is_at_or_below(path, base) || tree_.has(path)) continue;
      const auto identity = identify(path);
      if (!identity) {
        bound_.not_held.push_back(path);
        continue;
      }
      const sys::Fd directory(::open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      pin_ancestors(base, directory.get(), path);
      tree_.cover(path, *identity);
      bound_.masked.push_back(path);
    }
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
    const bool is_granted = std::ranges::any_of(
        grants_, [&](const auto& grant) { return core::is_at_or_below(grant.first, directory); });
    if (files.empty() && links.empty() && !is_granted) return false;
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

  Done allow() {
    const int abi = launcher_.landlock_abi;
    bound_.landlock_handled = landlock_handled(abi);
    bound_.landlock_scoped = landlock_scoped(abi);
    bound_.landlock_attribute_size = landlock_attribute_size(abi);
    for (const Program* program : programs()) {
      for (const auto& list : {program->executables, program->executable_directories}) {
        for (const std::string& path : list) {
          if (!contains(bound_.executables, path)) bound_.executables.push_back(path);
        }
      }
      for (const auto& list : {program->readable, program->prefixes}) {
        for (const std::string& path : list) rule(path, {"read_file", "read_dir"});
      }
    }
    for (const std::string& path : bound_.executables) {
      rule(path, {"execute", "read_file", "read_dir"});
    }
    for (const std::string& path : sockets_) rule(path, {"read_file", "write_file"});
    for (const lower::LandlockRule& planned : plan_.landlock) {
      if (auto done = allow_planned(planned); !done) return done;
    }
    return {};
  }

  Done allow_planned(const lower::LandlockRule& planned) {
    if (planned.path == "${PROGRAM}" || planned.path.starts_with("${EXEC:")) return {};
    if (planned.path.starts_with("${GLOB:")) {
      const std::string pattern = planned.path.substr(7, planned.path.size() - 8);
      for (const std::string& path : globbed_[pattern]) rule(path, planned.rights);
      return {};
    }
    const std::string path = filled(planned.path);
    const bool is_own = path == home_ || path == "/tmp" || path == "/dev/shm";
    if (contains(planned.rights, std::string_view("refer")) && launcher_.landlock_abi < 2 &&
        !is_own) {
      return std::unexpected(Refusal{
          .message = "this kernel's Landlock cannot allow moves between directories (ABI 1)",
          .help = "a kernel of 5.19 or later can"});
    }
    const bool deletes_only = contains(planned.rights, std::string_view("remove_file")) &&
                              !contains(planned.rights, std::string_view("write_file"));
    if (deletes_only && launcher_.landlock_abi < 3) {
      return std::unexpected(
          Refusal{.message = "this kernel's Landlock cannot refuse truncation (ABI below 3)",
                  .help = "fs:delete needs a kernel of 6.2 or later"});
    }
    // Base directories that this host does not have.
    if (path == "/nix/store" && !identify(path)) return {};
    rule(path, planned.rights);
    return {};
  }

  // Rights that only directories have are an error on a file.
  void rule(const std::string& path, const std::vector<std::string_view>& names) {
    std::uint64_t access = landlock_access(names, launcher_.landlock_abi);
    const std::string real = resolved_grant(path);
    const auto identity = identify(real);
    if (identity && !identity->is_directory() && !is_private(real)) access &= landlock_file_rights;
    bound_.landlock.push_back({.path = real, .access = access});
  }

  static bool is_private(std::string_view path) { return path == "/tmp" || path == "/dev/shm"; }

  // A grant is mounted where it really is.
  std::string resolved_grant(const std::string& path) const {
    if (grants_.contains(path) || tree_.has(path)) return path;
    const auto opened = open_host_path(path);
    return opened && grants_.contains(opened->resolved) ? opened->resolved : path;
  }

  Done set_environment() {
    for (const auto& [name, value] : plan_.environment) {
      bound_.environment.push_back(format("{}={}", name, filled(value)));
    }
    for (const auto* names : {&plan_.env_read, &plan_.env_inject}) {
      for (const std::string& name : *names) {
        const std::string* entry = find_variable(launcher_.environment, name);
        if (entry == nullptr) {
          return std::unexpected(
              Refusal{.message = format("the variable {} is not set", name),
                      .help = format("set {} for capgate, or remove the capability", name)});
        }
        bound_.environment.push_back(*entry);
      }
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
    if (const std::string* entry = find_variable(launcher_.environment, name)) {
      bound_.environment.push_back(*entry);
    }
  }

  // The caller's, if the server can see it.
  std::string choose_directory() const {
    const std::string& wanted = launcher_.caller.directory;
    for (std::string_view at = wanted; !at.empty(); at = parent_of(at)) {
      const auto found = grants_.find(at);
      if (found != grants_.end() && tree_.has(std::string(at))) return wanted;
    }
    return home_;
  }

  const lower::Plan& plan_;
  const Launcher& launcher_;
  bool spawns_;
  std::string home_;
  Program server_;
  std::vector<Program> spawned_;
  std::map<std::string, Grant, std::less<>> grants_;
  std::map<std::string, std::vector<std::string>> globbed_;
  std::vector<std::string> sockets_;
  bool grants_pending_ = true;
  bool state_is_home_ = false;
  Tree tree_;
  Bound bound_;
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
