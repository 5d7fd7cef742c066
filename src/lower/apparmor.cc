#include "lower/apparmor.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "lower/common.h"

namespace capgate::lower {
namespace {

using core::FsAction;
using core::IpcCapability;
using Shape = core::PathPattern::Shape;

enum class Stars : unsigned char { are_globs, are_literal };

// A path between quotes, in which nothing but an asterisk that is meant as one is a pattern.
// Control characters never get here: the grammar refuses them.
std::string in_quotes(std::string_view path, Stars stars = Stars::are_literal) {
  std::string out = "\"";
  for (const char c : path) {
    const bool is_pattern =
        std::string_view("\"\\[]{}?^").contains(c) || (c == '*' && stars == Stars::are_literal);
    // "@{" begins a variable, wherever it stands.
    if (is_pattern || c == '@') out += '\\';
    out += c;
  }
  return out + '"';
}

// A name for the profile that is one word of the language, whatever the manifest's name is.
std::string profile_name(const Input& input) {
  std::string name = "capgate-";
  for (const char c : input.manifest.name) {
    name += is_alnum(c) || c == '.' || c == '_' || c == '-' ? c : '_';
  }
  return name;
}

class AppArmor {
 public:
  explicit AppArmor(const Input& input)
      : input_(input),
        policy_(input.policy),
        support_("apparmor", input),
        profile_("capgate.apparmor"),
        name_(profile_name(input)) {
    artifact_.target = "apparmor";
  }

  Checked<Artifact> lower() {
    artifact_.notes = policy_notes(input_);
    artifact_.env_injections = env_injections(policy_);
    profile_.because("the language of AppArmor 3.0, and no attachment to any program");
    profile_.add("abi <abi/3.0>,\n");
    profile_.add(format("profile {} flags=(attach_disconnected) {{", name_));
    allow_base_system();
    allow_programs();
    for (const auto& grant : policy_.files) allow_grant(grant);
    allow_clock();
    allow_network();
    allow_sockets();
    limit();
    profile_.because("the language of AppArmor 3.0, and no attachment to any program");
    profile_.add("}");
    artifact_.files.push_back(std::move(profile_).take());
    add_notes();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  void rule(std::string_view text) { profile_.add(format("  {},", text)); }

  // No capability, mount, ptrace or change of profile: what is not named is denied. Of /proc only
  // what no process owns: the rest holds the environments of others.
  void allow_base_system() {
    profile_.because("base system, read-only");
    rule("/ r");
    rule("/usr/ r");
    rule("/usr/** mr");
    rule("/{,usr/}lib{,32,64}/** mr");
    rule("/nix/store/** mr");
    rule("/dev/{full,null,zero} rw");
    rule("/dev/{random,urandom} r");
    rule("/proc/{cpuinfo,meminfo,stat} r");
    rule("/proc/sys/vm/overcommit_memory r");
    for (const std::string_view path : base_etc_paths()) {
      rule(format("{}{{,/**}} r", path));
    }
    profile_.because("signals: among its own processes, and from outside");
    rule(format("signal (send, receive) peer={}", name_));
    rule("signal (receive) peer=unconfined");
  }

  // "ix": a program that is started stays in this profile.
  void allow_programs() {
    profile_.because("--program");
    for (const std::string& path : input_.options.programs) {
      rule(format("{} mrix", in_quotes(path)));
    }
    for (const auto& grant : policy_.programs) {
      const std::string suffix = "/" + grant.capability.program;
      const bool named = std::ranges::any_of(
          input_.options.programs, [&](const std::string& path) { return path.ends_with(suffix); });
      if (named) continue;
      profile_.because(grant.origins);
      rule(format("{} mrix", in_quotes("/usr/bin" + suffix)));
    }
  }

  void allow_grant(const core::Granted<core::FsCapability>& grant) {
    const core::FsCapability& fs = grant.capability;
    if (is_private_tmp(fs)) {
      artifact_.notes.emplace_back("fs: a profile makes no private /tmp, and opens no other");
      return list(fs);
    }
    if (fs.actions.has(FsAction::create) || fs.actions.has(FsAction::remove)) {
      support_.unsupported(fs, grant.origins, "its w means adding, changing and removing alike",
                           "write fs:write if both are meant, or use the native engine");
    }
    profile_.because(grant.origins);
    const bool reads = fs.actions.has(FsAction::read);
    const std::string_view access = reads ? "mr" : "rwk";
    const std::string& base = fs.path.base;
    if (fs.path.shape == Shape::entries) {
      allow_entries(base, fs.path.glob, access);
    } else {
      allow_tree(base, access, fs.path.shape);
    }
    deny_inside(grant);
  }

  // A star at the start matches no hidden file, as in a shell; AppArmor's own would.
  void allow_entries(std::string_view base, std::string_view glob, std::string_view access) {
    std::string directory = in_quotes(format("{}/", base));
    directory.pop_back();
    const std::string name = in_quotes(glob, Stars::are_globs).substr(1);
    if (!glob.starts_with('*')) return rule(format("{}{} {}", directory, name, access));
    const bool may_be_empty = glob.size() > 1 && glob[1] != '.';
    if (may_be_empty) rule(format("{}{} {}", directory, name.substr(1), access));
    rule(format("{}[^.]{} {}", directory, name, access));
  }

  // A directory's own name ends in a slash. The part behind the quoted path is a pattern.
  void allow_tree(std::string_view base, std::string_view access, Shape shape) {
    std::string inside = in_quotes(base);
    inside.pop_back();
    if (shape == Shape::node) rule(format("{}\" {}", inside, access));
    rule(format("{}/\" {}", inside, access));
    rule(format("{}/**\" {}", inside, access));
  }

  // A deny wins over every allow, also over one for a path below it.
  void deny_inside(const core::Granted<core::FsCapability>& grant) {
    const core::FsCapability& fs = grant.capability;
    const std::string& base = fs.path.base;
    for (const core::HiddenPath& hidden : core::credentials_below(base, input_.options.home)) {
      if (is_granted(policy_, hidden.path)) continue;
      if (holds_a_grant(policy_, hidden.path)) {
        support_.unsupported(fs, grant.origins,
                             format("denying {} would deny a grant below it", hidden.path),
                             "grant what is needed, not the directory around both");
        continue;
      }
      deny(hidden.path, "rwklmx");
    }
    if (fs.actions.has(FsAction::read)) return;
    for (const core::ReadOnlyPath& startup : core::startup_below(base, input_.options.home)) {
      deny_writing(startup.path);
    }
    for (const std::string_view name : core::protected_workspace_paths()) {
      deny_writing(format("{}/{}", base, name));
    }
  }

  void deny_writing(const std::string& path) {
    if (!holds_a_grant(policy_, path)) deny(path, "wl");
  }

  void deny(std::string_view path, std::string_view access) {
    std::string inside = in_quotes(path);
    inside.pop_back();
    rule(format("deny {}{{,/,/**}}\" {}", inside, access));
  }

  void allow_clock() {
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      profile_.because(grant.origins);
      rule("/etc/localtime r");
    }
  }

  void allow_network() {
    bool resolves = false;
    for (const auto& grant : policy_.connect) {
      list(grant.capability);
      profile_.because(grant.origins);
      const auto kind = grant.capability.endpoint.host.kind;
      resolves |= kind != core::HostPattern::Kind::ipv4 && kind != core::HostPattern::Kind::ipv6;
    }
    for (const auto& grant : policy_.listen) {
      list(grant.capability);
      profile_.because(grant.origins);
    }
    if (policy_.connect.empty() && policy_.listen.empty()) return;
    rule("network inet stream");
    rule("network inet6 stream");
    if (!resolves) return;
    profile_.because("names of declared endpoints are asked for by UDP");
    rule("network inet dgram");
    rule("network inet6 dgram");
    rule("/etc/{host.conf,hosts,nsswitch.conf,resolv.conf} r");
    rule("/run/systemd/resolve/*resolv.conf r");
  }

  void allow_sockets() {
    bool uses_unix = false;
    for (const auto& grant : policy_.sockets) {
      const IpcCapability& ipc = grant.capability;
      profile_.because(grant.origins);
      if (ipc.kind == IpcCapability::Kind::netlink_route) {
        rule("network netlink raw");
        continue;
      }
      uses_unix = true;
      allow_socket(grant);
    }
    if (!uses_unix) return;
    profile_.because("Unix sockets: to the paths above, and among its own processes");
    rule("unix (create, bind, listen, getattr, setattr, getopt, setopt, shutdown)");
    rule(format("unix (connect, accept, send, receive) peer=(label={})", name_));
  }

  void allow_socket(const core::Granted<IpcCapability>& grant) {
    const std::string path = socket_path(grant, input_, support_);
    if (path.empty()) return;
    const bool is_x11 = grant.capability.kind == IpcCapability::Kind::x11;
    rule(is_x11 ? format("{}/* rw", path) : format("{} rw", in_quotes(path)));
    rule("unix (send, receive) type=stream peer=(label=unconfined)");
    if (grant.capability.kind == IpcCapability::Kind::dbus_session) rule("dbus bus=session");
    if (grant.capability.kind == IpcCapability::Kind::dbus_system) rule("dbus bus=system");
  }

  void limit() {
    profile_.because("limits: open files, and no memory images on disk");
    for (const auto& grant : policy_.limits) {
      if (grant.capability.kind == core::LimitCapability::Kind::files) continue;
      list(grant.capability);
    }
    const auto files = limit_of(policy_, core::LimitCapability::Kind::files).value;
    rule(format("set rlimit nofile <= {}", files));
    rule("set rlimit core <= 0");
  }

  void list(const core::Capability& capability) {
    artifact_.not_covered.push_back(print(capability));
  }

  void add_notes() {
    artifact_.notes.push_back(
        format("apparmor: load it with apparmor_parser -r capgate.apparmor, then start the server "
               "with aa-exec -p {} -- COMMAND, in an empty environment",
               name_));
    if (!policy_.connect.empty() || !policy_.listen.empty()) {
      artifact_.notes.emplace_back("net: every host and port can be reached by TCP");
    }
    if (!policy_.sockets.empty()) {
      artifact_.notes.emplace_back(
          "ipc: a socket of the host that has no path is closed; data goes to services that are "
          "not confined themselves");
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  Artifact artifact_;
  FileBuilder profile_;
  std::string name_;
};

}  // namespace

Checked<Artifact> lower_to_apparmor(const Input& input) { return AppArmor(input).lower(); }

}  // namespace capgate::lower
