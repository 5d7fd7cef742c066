#include "lower/to_plan.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/describe.h"
#include "core/rights.h"
#include "core/sensitive.h"
#include "lower/common.h"
#include "lower/plan_network.h"

namespace capgate::lower {
namespace {

using core::FileRights;
using core::IpcCapability;
using core::LimitCapability;
using Kind = PlanMount::Kind;

constexpr std::string_view home_hole = "${HOME}";

constexpr std::string_view read_rights[] = {"read_file", "read_dir"};
constexpr std::string_view execute_rights[] = {"execute", "read_file", "read_dir"};
constexpr std::string_view modify_rights[] = {"write_file", "truncate", "make_reg",
                                              "make_dir",   "make_sym", "make_fifo"};
constexpr std::string_view remove_rights[] = {"remove_file", "remove_dir"};

// Moving between directories takes an entry away and adds one: only the full write can.
std::vector<std::string_view> landlock_rights(FileRights rights) {
  std::vector<std::string_view> out(std::begin(read_rights), std::end(read_rights));
  const bool modify = rights.has(FileRights::modify);
  const bool remove = rights.has(FileRights::remove);
  if (modify) out.insert(out.end(), std::begin(modify_rights), std::end(modify_rights));
  if (remove) out.insert(out.end(), std::begin(remove_rights), std::end(remove_rights));
  if (modify && remove) out.emplace_back("refer");
  return out;
}

std::vector<std::string_view> private_place_rights() {
  auto out = landlock_rights({FileRights::read | FileRights::modify | FileRights::remove});
  out.emplace_back("make_sock");
  return out;
}

std::string_view rights_name(FileRights rights) {
  const core::FsActions actions = core::actions_for(rights);
  if (actions.has(core::FsAction::write)) return "write";
  if (actions.has(core::FsAction::create)) return "create";
  if (actions.has(core::FsAction::remove)) return "delete";
  return "read";
}

bool is_partial(const core::FsCapability& fs) {
  const FileRights rights = core::rights_of(fs.actions);
  return rights.has(FileRights::modify) != rights.has(FileRights::remove);
}

bool holds_partial_grant(const core::Policy& policy, std::string_view directory) {
  return std::ranges::any_of(policy.files, [&](const auto& grant) {
    return is_partial(grant.capability) && !is_private_tmp(grant.capability) &&
           core::is_at_or_below(grant.capability.path.base, directory);
  });
}

// Landlock adds up what the directories above a path allow, so a grant that may add but not remove
// cannot lie below the private HOME, where the server may do both. Then HOME is elsewhere.
std::string_view private_home(const Input& input) {
  const std::string& home = input.options.home;
  if (home.empty()) return home_hole;
  if (!holds_partial_grant(input.policy, home)) return home;
  return holds_partial_grant(input.policy, default_home) ? "/home/server" : default_home;
}

class Planner {
 public:
  explicit Planner(const Input& input)
      : input_(input),
        policy_(input.policy),
        home_(private_home(input)),
        support_("the native engine", input) {
    plan_.server = input.manifest.name;
    plan_.version = input.manifest.version;
    plan_.arch = input.options.arch;
  }

  Checked<Artifact> lower() {
    refuse_partial_grants_in_tmp();
    open_holes();
    mount_base_system();
    mount_private_places();
    mount_grants();
    mount_sockets();
    mount_clock();
    allow_files();
    filter();
    limit();
    plan_.network = plan_network(input_, support_);
    set_environment();

    Artifact artifact{.target = "plan"};
    artifact.notes = policy_notes(input_);
    note_seals(artifact.notes);
    artifact.env_injections = env_injections(policy_);
    std::erase_if(artifact.env_injections, [&](const std::string& name) {
      return std::ranges::binary_search(plan_.seals, name, {},
                                        [](const PlanSeal& seal) { return seal.env.name; });
    });
    artifact.unenforced = TRY(std::move(support_).finish());
    artifact.plan = std::move(plan_);
    return artifact;
  }

 private:
  void refuse_partial_grants_in_tmp() {
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      if (!is_partial(fs) || is_private_tmp(fs) || !core::is_at_or_below(fs.path.base, "/tmp")) {
        continue;
      }
      support_.unsupported(fs, grant.origins,
                           "below /tmp, which is the server's own, it is fs:write",
                           "write fs:write, or use a directory outside /tmp");
    }
  }

  void open_holes() {
    if (input_.options.home.empty()) hole("HOME", "the caller's home directory, private inside");
    hole("IDS", "the host's user and group that the sandbox's user 1000 stands for");
    hole("PROGRAM", "the server's program with its interpreter chain and their prefix");
    for (const auto& grant : policy_.programs) {
      hole(format("EXEC:{}", grant.capability.program), "the files that this program needs to run");
      plan_.programs.push_back(grant.capability.program);
    }
    for (const auto& grant : policy_.files) {
      if (grant.capability.path.shape != core::PathPattern::Shape::entries) continue;
      hole(format("GLOB:{}", print(grant.capability.path)), "the entries that match at launch");
    }
  }

  void hole(std::string name, std::string meaning) {
    plan_.holes.push_back({.name = std::move(name), .meaning = std::move(meaning)});
  }

  void mount(PlanMount mount) { plan_.mounts.push_back(std::move(mount)); }

  void mount_base_system() {
    mount({.kind = Kind::bind, .target = "/usr", .detail = "read"});
    for (const std::string_view directory : {"/usr/bin", "/usr/games", "/usr/local/bin",
                                             "/usr/local/games", "/usr/local/sbin", "/usr/sbin"}) {
      mount({.kind = Kind::programs, .target = std::string(directory), .if_present = true});
    }
    for (const std::string_view name : {"bin", "lib", "lib32", "lib64", "sbin"}) {
      mount(
          {.kind = Kind::symlink, .target = format("/{}", name), .detail = format("usr/{}", name)});
    }
    mount({.kind = Kind::bind, .target = "/nix/store", .detail = "read", .if_present = true});
    for (const std::string_view path : base_etc_paths()) {
      mount(
          {.kind = Kind::bind, .target = std::string(path), .detail = "read", .if_present = true});
    }
    TextStore texts;
    for (const GeneratedFile& file : generated_etc_files(input_, home_, texts)) {
      mount({.kind = Kind::file,
             .target = std::string(file.path),
             .detail = std::string(file.contents)});
    }
  }

  void mount_private_places() {
    const std::uint64_t size = limit_of(policy_, LimitCapability::Kind::disk).value;
    mount({.kind = Kind::proc, .target = "/proc"});
    mount({.kind = Kind::file, .target = "/proc/sys/kernel/random/boot_id", .detail = boot_id()});
    // They list the keys of the host's users, with their descriptions.
    mount({.kind = Kind::file, .target = "/proc/keys"});
    mount({.kind = Kind::file, .target = "/proc/key-users"});
    for (const std::string_view name : {"full", "null", "random", "urandom", "zero"}) {
      mount({.kind = Kind::device, .target = format("/dev/{}", name)});
    }
    mount({.kind = Kind::symlink, .target = "/dev/fd", .detail = "/proc/self/fd"});
    mount({.kind = Kind::symlink, .target = "/dev/stdin", .detail = "/proc/self/fd/0"});
    mount({.kind = Kind::symlink, .target = "/dev/stdout", .detail = "/proc/self/fd/1"});
    mount({.kind = Kind::symlink, .target = "/dev/stderr", .detail = "/proc/self/fd/2"});
    mount({.kind = Kind::tmpfs, .target = "/dev/shm", .size = size});
    mount({.kind = Kind::tmpfs, .target = "/tmp", .size = size});
    mount({.kind = Kind::tmpfs, .target = std::string(home_), .size = size});
  }

  // A name for this boot that is not the host's, as the kernel writes one.
  [[nodiscard]] std::string boot_id() const {
    constexpr std::size_t prefix = std::string_view("sha256:").size();
    const std::string_view hex = std::string_view(policy_.hash).substr(prefix + 32);
    return format("{}-{}-{}-{}-{}\n", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                  hex.substr(16, 4), hex.substr(20, 12));
  }

  void mount_grants() {
    bool writes = false;
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      if (is_private_tmp(fs)) continue;
      const FileRights rights = core::rights_of(fs.actions);
      writes |= rights.has(FileRights::modify);
      if (fs.path.shape == core::PathPattern::Shape::entries) {
        mount({.kind = Kind::entries,
               .target = print(fs.path),
               .detail = std::string(rights_name(rights)),
               .origins = &grant.origins});
        mask_credentials(grant);
        continue;
      }
      mount({.kind = Kind::bind,
             .target = fs.path.base,
             .detail = std::string(rights_name(rights)),
             .directory = fs.path.shape == core::PathPattern::Shape::tree,
             .origins = &grant.origins});
      mask_credentials(grant);
    }
    // Also without a grant: the directory around an interpreter is one.
    for (const std::string_view name : core::workspace_secret_names()) {
      plan_.hidden_names.emplace_back(name);
    }
    if (!writes) return;
    for (const std::string_view name : core::protected_workspace_paths()) {
      plan_.protected_names.emplace_back(name);
    }
  }

  void mask_credentials(const core::Granted<core::FsCapability>& grant) {
    const std::string& base = grant.capability.path.base;
    for (core::HiddenPath& hidden : core::credentials_below(base, input_.options.home)) {
      if (is_granted(policy_, hidden.path)) continue;
      const bool is_file = hidden.entry->kind == core::SensitiveKind::file;
      mount({.kind = Kind::mask,
             .target = std::move(hidden.path),
             .detail = is_file ? "file" : "directory",
             .if_present = true,
             .origins = &grant.origins});
    }
  }

  void mount_sockets() {
    for (const auto& grant : policy_.sockets) {
      const std::string path = socket_path(grant.capability);
      if (path.empty()) continue;
      mount({.kind = Kind::bind, .target = path, .detail = "socket", .origins = &grant.origins});
    }
  }

  std::string socket_path(const IpcCapability& ipc) {
    switch (ipc.kind) {
      case IpcCapability::Kind::self:
      case IpcCapability::Kind::netlink_route: return {};
      case IpcCapability::Kind::unix_path: return ipc.path;
      case IpcCapability::Kind::dbus_system: return "/run/dbus/system_bus_socket";
      case IpcCapability::Kind::x11:
        hole("DISPLAY", "the display number of the launcher's X server");
        return "/tmp/.X11-unix/X${DISPLAY}";
      case IpcCapability::Kind::dbus_session: break;
    }
    if (!input_.options.runtime_dir.empty()) return input_.options.runtime_dir + "/bus";
    hole("XDG_RUNTIME_DIR", "the directory of the user's session bus");
    return "${XDG_RUNTIME_DIR}/bus";
  }

  void mount_clock() {
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      for (const std::string_view path : {"/usr/share/zoneinfo", "/etc/localtime"}) {
        mount({.kind = Kind::bind,
               .target = std::string(path),
               .detail = "read",
               .origins = &grant.origins});
      }
    }
  }

  // Landlock repeats the mounts' promise at another place of the kernel: what a rule does not name
  // cannot be used even if it became visible. Devices can be made nowhere.
  void allow_files() {
    const std::vector<std::string_view> read(std::begin(read_rights), std::end(read_rights));
    const std::vector<std::string_view> execute(std::begin(execute_rights),
                                                std::end(execute_rights));
    plan_.landlock.push_back({.path = "${PROGRAM}", .rights = execute});
    for (const std::string& program : plan_.programs) {
      plan_.landlock.push_back({.path = format("${{EXEC:{}}}", program), .rights = execute});
    }
    // Programs that resolve a path list the directories on its way; what is there was mounted.
    plan_.landlock.push_back({.path = "/", .rights = {"read_dir"}});
    for (const std::string_view path : {"/usr", "/nix/store", "/etc", "/proc"}) {
      plan_.landlock.push_back({.path = std::string(path), .rights = read});
    }
    // An inner sandbox writes its own id maps.
    if (seccomp_needs(policy_).nested_sandbox)
      plan_.landlock.back().rights.emplace_back("write_file");
    plan_.landlock.push_back({.path = "/dev", .rights = {"read_file", "read_dir", "write_file"}});
    for (const std::string_view path :
         {std::string_view("/dev/shm"), std::string_view("/tmp"), home_}) {
      plan_.landlock.push_back({.path = std::string(path), .rights = private_place_rights()});
    }
    for (const auto& grant : policy_.files) {
      if (is_private_tmp(grant.capability)) continue;
      const bool entries = grant.capability.path.shape == core::PathPattern::Shape::entries;
      const std::string path = print(grant.capability.path);
      plan_.landlock.push_back(
          {.path = entries ? format("${{GLOB:{}}}", path) : grant.capability.path.base,
           .rights = landlock_rights(core::rights_of(grant.capability.actions))});
    }
  }

  void filter() {
    plan_.seccomp = seccomp_needs(policy_);
    plan_.seccomp.exec_token = true;
  }

  void limit() {
    using enum LimitCapability::Kind;
    for (const auto kind : {cpu, disk, files, memory, pids, time}) {
      const PlanLimit value = limit_of(policy_, kind);
      if (value.value != 0) plan_.limits.push_back(value);
    }
  }

  void set_environment() {
    plan_.environment = {{"HOME", std::string(home_)},
                         {"LANG", "C.UTF-8"},
                         {"PATH", std::string(sandbox_path)},
                         {"TMPDIR", "/tmp"}};
    for (const auto& grant : policy_.variables) {
      const core::EnvCapability& env = grant.capability;
      if (!env.to.empty()) {
        plan_.seals.push_back({.env = env, .position = position_of(sealing(grant), input_)});
        continue;
      }
      const bool reads = env.action == core::EnvCapability::Action::read;
      (reads ? plan_.env_read : plan_.env_inject).push_back(env.name);
    }
  }

  // The first declaration that seals the variable; others may only read it.
  [[nodiscard]] const core::Declared& sealing(
      const core::Granted<core::EnvCapability>& grant) const {
    for (const std::uint32_t index : grant.origins) {
      const core::Declared& declared = input_.manifest.declared[index];
      const auto* env = std::get_if<core::EnvCapability>(&declared.capability);
      if (env != nullptr && !env->to.empty()) return declared;
    }
    return input_.manifest.declared[grant.origins.front()];
  }

  // What a reviewer should know who has not read what sealing is.
  void note_seals(std::vector<std::string>& notes) const {
    for (const PlanSeal& seal : plan_.seals) {
      std::string endpoints;
      for (const core::Endpoint& endpoint : seal.env.to) {
        endpoints += format("{}{}", endpoints.empty() ? "" : ", ", print(endpoint));
      }
      notes.push_back(
          format("env: {} is sealed: the server holds a placeholder; TLS to {} is terminated by "
                 "the broker, which reads the requests and puts the value into {}",
                 seal.env.name, endpoints, core::place_words(seal.env.as)));
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  std::string_view home_;
  Support support_;
  Plan plan_;
};

}  // namespace

Checked<Artifact> lower_to_plan(const Input& input) { return Planner(input).lower(); }

}  // namespace capgate::lower
