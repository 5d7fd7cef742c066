#include "lower/firejail.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/path.h"
#include "core/sensitive.h"
#include "lower/common.h"

namespace capgate::lower {
namespace {

using core::FsAction;
using core::IpcCapability;
using core::LimitCapability;
using Shape = core::PathPattern::Shape;

// A profile has no quotes: a line is cut at its comment, its spaces are pressed together, and some
// characters are patterns or are refused. So a path is written as it is or not at all.
bool can_be_written(std::string_view path) {
  return path.find_first_of("\\&!?\"'<>%^(){}[];,*#$|`~") == std::string_view::npos &&
         path.find("  ") == std::string_view::npos;
}

// What stays of the root directory. Everything else that lies there goes with one line.
constexpr std::string_view base_directories[] = {"/bin",   "/dev",   "/etc",    "/lib",
                                                 "/lib32", "/lib64", "/libx32", "/proc",
                                                 "/sbin",  "/tmp",   "/usr"};

// firejail fills these itself, and a whitelist there would hide what it needs.
constexpr std::string_view own_directories[] = {"/dev", "/etc", "/proc",   "/run",
                                                "/sys", "/usr", "/var/tmp"};

std::string top_of(std::string_view path) { return std::string(path.substr(0, path.find('/', 1))); }

// firejail looks at numbers only: a call that is allowed with some arguments is allowed with all.
std::string allowed_calls(const SeccompNeeds& needs) {
  std::set<std::string_view> names;
  for (const Rule& rule : seccomp_rules(needs)) {
    if (rule.action == allow) names.insert(core::syscall_info(rule.call).name);
  }
  return join(std::vector<std::string>(names.begin(), names.end()), ",");
}

class Firejail {
 public:
  explicit Firejail(const Input& input)
      : input_(input),
        policy_(input.policy),
        support_("firejail", input),
        profile_("capgate.profile") {
    artifact_.target = "firejail";
  }

  Checked<Artifact> lower() {
    artifact_.notes = policy_notes(input_);
    artifact_.env_injections = env_injections(policy_);
    isolate();
    hide_the_host();
    for (const auto& grant : policy_.files) show_grant(grant);
    show_programs();
    restrict_calls();
    limit();
    artifact_.files.push_back(std::move(profile_).take());
    add_notes();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  void isolate() {
    profile_.because("isolation: no capability, no new privilege, no network, own namespaces");
    for (const std::string_view line :
         {"caps.drop all", "nonewprivs", "noroot", "nogroups", "net none", "ipc-namespace",
          "hostname capgate", "dbus-user none", "dbus-system none", "machine-id", "no3d", "noinput",
          "nosound", "notv", "nou2f", "novideo", "private-dev", "private-tmp"}) {
      profile_.add(line);
    }
    const bool shows_windows = std::ranges::any_of(policy_.sockets, [](const auto& grant) {
      return grant.capability.kind == IpcCapability::Kind::x11;
    });
    if (!shows_windows) profile_.add("x11 none");
  }

  void hide_the_host() {
    profile_.because("of the root directory, the base system and what holds a grant");
    std::set<std::string> shown(std::begin(base_directories), std::end(base_directories));
    for (const auto& grant : policy_.files) {
      if (can_be_shown(grant.capability)) shown.insert(top_of(grant.capability.path.base));
    }
    shown.insert("/run");
    for (const std::string& directory : shown) profile_.add("noblacklist " + directory);
    profile_.add("noblacklist /run/firejail");
    profile_.add("blacklist /*");
    profile_.add("blacklist /run/*");
    profile_.because("of /etc, what programs need and what holds no secret");
    std::string names =
        "alternatives,ca-certificates,ld.so.cache,ld.so.conf,ld.so.conf.d,"
        "mime.types,os-release,pki,protocols,services,ssl";
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      names += ",localtime";
    }
    profile_.add("private-etc " + names);
  }

  static bool is_own(std::string_view path) {
    return std::ranges::any_of(own_directories, [&](std::string_view directory) {
      return core::is_at_or_below(path, directory);
    });
  }

  static bool can_be_shown(const core::FsCapability& fs) {
    return fs.path.shape != Shape::entries && !is_private_tmp(fs) && !is_own(fs.path.base);
  }

  void show_grant(const core::Granted<core::FsCapability>& grant) {
    const core::FsCapability& fs = grant.capability;
    const std::string& base = fs.path.base;
    if (is_private_tmp(fs)) return;
    const bool reads = fs.actions.has(FsAction::read);
    if (reads && fs.path.shape != Shape::entries && core::is_at_or_below(base, "/usr")) return;
    if (fs.path.shape == Shape::entries) {
      support_.unsupported(fs, grant.origins,
                           "which entries match is only known at launch, so none is shown",
                           "grant the directory, or use the native engine");
      return;
    }
    if (is_own(base)) {
      return support_.impossible(fs, grant.origins, "firejail makes that directory anew",
                                 "use the native engine");
    }
    if (!can_be_written(base)) {
      return support_.impossible(fs, grant.origins, "a profile cannot write that path",
                                 "rename it, or grant the directory above it");
    }
    if (fs.actions.has(FsAction::create) || fs.actions.has(FsAction::remove)) {
      support_.unsupported(fs, grant.origins, "a writable path allows adding and removing alike",
                           "write fs:write if both are meant, or use the native engine");
    }
    profile_.because(grant.origins);
    // firejail takes none for a directory of the root itself, which nothing hides anyway.
    if (base != top_of(base)) profile_.add("whitelist " + base);
    profile_.add(format("{} {}", reads ? "read-only" : "read-write", base));
    if (!reads) profile_.add("noexec " + base);
    protect_inside(grant);
  }

  void protect_inside(const core::Granted<core::FsCapability>& grant) {
    const core::FsCapability& fs = grant.capability;
    for (const auto& hidden : core::credentials_below(fs.path.base, input_.options.home)) {
      if (is_granted(policy_, hidden.path)) continue;
      if (holds_a_grant(policy_, hidden.path)) {
        support_.unsupported(fs, grant.origins,
                             format("hiding {} would hide a grant below it", hidden.path),
                             "grant what is needed, not the directory around both");
        continue;
      }
      profile_.add("blacklist " + hidden.path);
    }
    if (fs.actions.has(FsAction::read)) return;
    for (const auto& startup : core::startup_below(fs.path.base, input_.options.home)) {
      if (!holds_a_grant(policy_, startup.path)) profile_.add("read-only " + startup.path);
    }
    for (const std::string_view name : core::protected_workspace_paths()) {
      const std::string path = format("{}/{}", fs.path.base, name);
      if (!holds_a_grant(policy_, path)) profile_.add("read-only " + path);
    }
  }

  // private-bin takes names, which it looks for in the usual directories.
  void show_programs() {
    for (const auto& grant : policy_.programs) list(grant.capability);
    if (input_.options.programs.empty()) return;
    std::vector<std::string> names;
    names.reserve(input_.options.programs.size() + policy_.programs.size());
    for (const std::string& path : input_.options.programs) {
      std::string name = path.substr(path.rfind('/') + 1);
      if (can_be_written(name) && name.find(' ') == std::string::npos) {
        names.push_back(std::move(name));
      }
    }
    for (const auto& grant : policy_.programs) names.push_back(grant.capability.program);
    sort_and_deduplicate(names);
    profile_.because("programs: the server's own and declared ones");
    profile_.add("private-bin " + join(names, ","));
  }

  void restrict_calls() {
    const SeccompNeeds needs = seccomp_needs(policy_);
    std::string protocols = "inet,inet6";
    if (needs.unix_sockets) protocols = "unix," + protocols;
    if (needs.netlink_route) protocols += ",netlink";
    profile_.because("system calls and families of sockets: allowlist");
    profile_.add("protocol " + protocols);
    profile_.add("seccomp.block-secondary");
    // glibc starts a thread another way only where clone3 is not known.
    profile_.add("seccomp-error-action ENOSYS");
    profile_.add("seccomp.keep " + allowed_calls(needs));
    for (const auto& grant : policy_.sockets) {
      using enum IpcCapability::Kind;
      if (grant.capability.kind == self || grant.capability.kind == netlink_route) continue;
      list(grant.capability);
    }
  }

  void limit() {
    profile_.because("limits");
    const auto files = limit_of(policy_, LimitCapability::Kind::files).value;
    profile_.add(format("rlimit-nofile {}", files));
    for (const auto& grant : policy_.limits) {
      const LimitCapability& own = grant.capability;
      if (own.kind == LimitCapability::Kind::time) {
        profile_.because(grant.origins);
        profile_.add(format("timeout {:02}:{:02}:{:02}", own.value / 3600, own.value / 60 % 60,
                            own.value % 60));
      } else if (own.kind != LimitCapability::Kind::files) {
        list(own);
      }
    }
  }

  void list(const core::Capability& capability) {
    artifact_.not_covered.push_back(print(capability));
  }

  void add_notes() {
    artifact_.notes.emplace_back(
        "firejail: start it as an ordinary user, in an empty environment: env -i firejail --quiet "
        "--profile=capgate.profile COMMAND");
    artifact_.notes.emplace_back(
        "exec: firejail tells a thread from a process by no argument, so child processes can be "
        "started");
    if (!policy_.connect.empty() || !policy_.listen.empty()) {
      artifact_.notes.emplace_back("net: the sandbox has no network; use another target");
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  Artifact artifact_;
  FileBuilder profile_;
};

}  // namespace

Checked<Artifact> lower_to_firejail(const Input& input) { return Firejail(input).lower(); }

}  // namespace capgate::lower
