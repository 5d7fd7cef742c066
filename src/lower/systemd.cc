#include "lower/systemd.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "lower/common.h"
#include "lower/egress_policy.h"
#include "lower/systemd_units.h"
#include "lower/systemd_words.h"

namespace capgate::lower {
namespace {

using core::FsAction;
using core::IpcCapability;
using core::LimitCapability;

constexpr std::string_view hosts = "127.0.0.1 localhost capgate\n::1 localhost capgate\n";

bool is_below_home(std::string_view path) {
  return std::ranges::any_of(
      std::to_array<std::string_view>({"/home", "/root", "/run/user"}),
      [&](std::string_view home) { return core::is_at_or_below(path, home); });
}

class Systemd {
 public:
  explicit Systemd(const Input& input)
      : input_(input),
        policy_(input.policy),
        names_(unit_names(input.manifest.name)),
        support_("systemd", input),
        unit_(artifact_.texts.keep(names_.service)) {
    artifact_.target = "systemd";
  }

  Checked<Artifact> lower() {
    TRY(check_options());
    refuse_what_it_cannot_keep();
    artifact_.notes = policy_notes(input_);
    artifact_.env_injections = env_injections(policy_);
    begin_service();
    run_command();
    isolate();
    limit();
    mount_base_system();
    mount_grants();
    mount_sockets();
    mount_clock();
    close_homes();
    allow_programs();
    pass_environment();
    collect_files();
    add_notes();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  // Both would be dropped without a word.
  [[nodiscard]] Checked<void> check_options() const {
    const Options defaults;
    const auto refusal = [](std::string message, std::string help) {
      return std::unexpected(Diagnostics{{.code = Code::adapter_unsupported,
                                          .where = Span::nowhere(),
                                          .message = std::move(message),
                                          .help = std::move(help)}});
    };
    if (!input_.options.command.front().starts_with('/')) {
      return refusal(format("systemd needs the program's place: {} is not absolute",
                            quoted(input_.options.command.front())),
                     "write an absolute path: -- /usr/bin/node server.js");
    }
    if (input_.options.user != defaults.user) {
      return refusal("systemd runs the server as a user of its own, not as --user says",
                     "leave --user out, and give that user the rights to granted files");
    }
    if (input_.options.egress_dir != defaults.egress_dir) {
      return refusal("systemd itself makes the directory of the broker", "leave --egress-dir out");
    }
    return {};
  }

  void refuse_what_it_cannot_keep() {
    refuse_native_only(input_, support_);
    refuse_listeners(input_, support_);
    refuse_unseen_requests(input_, support_);
  }

  [[nodiscard]] bool has_egress() const { return !policy_.connect.empty(); }

  void begin_service() {
    unit_.because("the server, one for each connection to its socket");
    unit_.add("[Unit]");
    unit_.add(format("Description=MCP server {}", unit_prose(input_.manifest.name)));
    unit_.add("CollectMode=inactive-or-failed");
    if (!has_egress()) return;
    unit_.because(policy_.connect.front().origins);
    unit_.add(format("Requires={}\nAfter={}", names_.egress_service, names_.egress_service));
  }

  void run_command() {
    unit_.because("the server's command, on the connection");
    unit_.add("\n[Service]\nType=exec");
    std::vector<std::string> words;
    if (has_egress()) {
      words = {"/run/capgate/capgate-init", "forward"};
      if (seccomp_needs(policy_).unix_sockets) words.emplace_back("--unix-sockets");
      if (policy_.programs.empty()) words.emplace_back("--no-processes");
      words.emplace_back("--");
    }
    words.insert(words.end(), input_.options.command.begin(), input_.options.command.end());
    unit_.add(format("ExecStart={}", unit_command(words)));
    unit_.add(
        "StandardInput=socket\nStandardOutput=socket\nStandardError=journal\nWorkingDirectory=/"
        "tmp");
    unit_.because(
        "identity: a user that nothing else is, since the processes of one user can look "
        "into each other");
    unit_.add(format("User={}\nGroup={}", names_.user, names_.user));
    unit_.add("SupplementaryGroups=\nUMask=0077");
  }

  void isolate() {
    unit_.because("isolation: no network, no privileges, nothing of the host's kernel");
    unit_.add(isolation_lines());
    const SeccompNeeds needs = seccomp_needs(policy_);
    // What Chromium makes. The private IPC namespace is private enough for a browser, too.
    unit_.add(needs.nested_sandbox ? "RestrictNamespaces=user pid net" : "RestrictNamespaces=yes");
    // The forwarder connects to the broker's socket; it keeps the server itself from Unix sockets.
    const bool unix_sockets = needs.unix_sockets || has_egress();
    unit_.add(format("RestrictAddressFamilies=AF_INET AF_INET6{}{}", unix_sockets ? " AF_UNIX" : "",
                     needs.netlink_route ? " AF_NETLINK" : ""));
    unit_.because("system calls: allowlist");
    unit_.add(system_call_lines(needs, input_.options.arch));
  }

  void limit() {
    add_limit(LimitCapability::Kind::memory, "MemoryMax={}\nMemorySwapMax=0");
    add_limit(LimitCapability::Kind::pids, "TasksMax={}");
    add_limit(LimitCapability::Kind::files, "LimitNOFILE={}");
    add_limit(LimitCapability::Kind::cpu, "CPUQuota={}%");
    add_limit(LimitCapability::Kind::time, "RuntimeMaxSec={}");
    unit_.because("limits: no core dump");
    unit_.add("LimitCORE=0");
  }

  // `line` holds {} where the value goes. A limit without a default is left out.
  void add_limit(LimitCapability::Kind kind, std::string_view line) {
    const PlanLimit limit = limit_of(policy_, kind);
    if (limit.value == 0) return;
    because_of_limit(kind);
    const std::size_t hole = line.find("{}");
    unit_.add(format("{}{}{}", line.substr(0, hole), limit.value, line.substr(hole + 2)));
  }

  void because_of_limit(LimitCapability::Kind kind) {
    unit_.because("limits: safe defaults");
    for (const auto& grant : policy_.limits) {
      if (grant.capability.kind == kind) unit_.because(grant.origins);
    }
  }

  void mount_base_system() {
    unit_.because("an empty root, on which what follows is mounted");
    unit_.add("TemporaryFileSystem=/:ro");
    const PlanLimit disk = limit_of(policy_, LimitCapability::Kind::disk);
    because_of_limit(LimitCapability::Kind::disk);
    for (const std::string_view place : {"/dev/shm", "/tmp"}) {
      unit_.add(format("TemporaryFileSystem={}:rw,mode=1777,nosuid,nodev,noexec,size={}", place,
                       disk.value));
    }
    unit_.because("nothing of the host's devices, terminals and kernel objects");
    unit_.add("InaccessiblePaths=-/sys -/dev/hugepages -/dev/pts");
    unit_.because("base system, read-only");
    unit_.add("BindReadOnlyPaths=/usr -/bin -/lib -/lib32 -/lib64 -/libx32 -/sbin -/nix/store");
    for (const std::string_view path : base_etc_paths()) {
      unit_.add(format("BindReadOnlyPaths=-{}", path));
    }
    unit_.add(format("BindReadOnlyPaths=/etc/capgate/{}:/etc/hosts", names_.hosts_file));
    unit_.because("the server's own files: its program, and what --program names");
    for (const std::string& path : own_programs()) {
      if (core::is_at_or_below(path, "/usr") || is_granted(policy_, path)) continue;
      unit_.add(format("BindReadOnlyPaths={}", unit_bind(path, path)));
    }
    if (!has_egress()) return;
    unit_.because(policy_.connect.front().origins);
    unit_.add(format("BindReadOnlyPaths={}:/run/capgate", names_.egress_directory));
  }

  [[nodiscard]] std::vector<std::string> own_programs() const {
    std::vector<std::string> out = input_.options.programs;
    out.push_back(input_.options.command.front());
    sort_and_deduplicate(out);
    return out;
  }

  void mount_grants() {
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      if (is_private_tmp(fs) || fs.path.shape == core::PathPattern::Shape::entries) continue;
      const std::string& path = fs.path.base;
      const bool reads_only = fs.actions.has(FsAction::read);
      grants_below_home_ |= is_below_home(path);
      unit_.because(grant.origins);
      unit_.add(
          format("{}={}", reads_only ? "BindReadOnlyPaths" : "BindPaths", unit_bind(path, path)));
      // What the server writes, it cannot start.
      if (!reads_only) unit_.add(format("NoExecPaths={}", unit_word(path)));
      hide_credentials(grant);
      if (!reads_only) protect_startup_files(path);
    }
  }

  void close_homes() {
    unit_.because("homes: the root has none, but for grants");
    // yes would hide the grants, too.
    unit_.add(grants_below_home_ ? "ProtectHome=read-only" : "ProtectHome=yes");
  }

  void hide_credentials(const core::Granted<core::FsCapability>& grant) {
    const std::string& base = grant.capability.path.base;
    bool hides = false;
    for (const core::HiddenPath& hidden : core::credentials_below(base, input_.options.home)) {
      if (is_granted(policy_, hidden.path)) continue;
      hides = true;
      if (!holds_a_grant(policy_, hidden.path)) {
        unit_.add(format("InaccessiblePaths={}", unit_word("-" + hidden.path)));
        continue;
      }
      // An inaccessible directory would take the grant below it along.
      if (hidden.path.find_first_of(":\\\"") != std::string::npos) {
        support_.unsupported(grant.capability, grant.origins,
                             format("it cannot hide {} around a grant in it", hidden.path),
                             "grant what is needed below it");
        continue;
      }
      unit_.add(format("TemporaryFileSystem={}", unit_word(hidden.path + ":ro")));
    }
    if (!hides) return;
    artifact_.notes.push_back(
        format("fs: credential paths below {} are hidden", escape_for_terminal(base)));
  }

  void protect_startup_files(const std::string& base) {
    for (const core::ReadOnlyPath& path : core::startup_below(base, input_.options.home)) {
      if (is_granted(policy_, path.path)) continue;
      unit_.add(format("ReadOnlyPaths={}", unit_word("-" + path.path)));
    }
  }

  void mount_sockets() {
    for (const auto& grant : policy_.sockets) {
      const std::string path = socket_path(grant, input_, support_);
      if (path.empty()) continue;
      grants_below_home_ |= is_below_home(path);
      unit_.because(grant.origins);
      unit_.add(format("BindReadOnlyPaths={}", unit_bind(path, path)));
      if (grant.capability.kind == IpcCapability::Kind::dbus_session) {
        unit_.add(
            format("Environment={}", unit_word("DBUS_SESSION_BUS_ADDRESS=unix:path=" + path)));
      }
    }
  }

  void mount_clock() {
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      unit_.because(grant.origins);
      unit_.add("BindReadOnlyPaths=/etc/localtime");
    }
  }

  // Mounts of programs are noexec but for the server's own and the declared ones. Libraries are
  // mapped executable, so that their directories stay open; a program cannot be started through
  // the loader, which maps it from a noexec mount.
  void allow_programs() {
    unit_.because("programs: only the server's own and declared ones");
    unit_.add("NoExecPaths=/usr -/bin -/sbin");
    unit_.add("ExecPaths=/usr/lib -/usr/lib32 -/usr/lib64 -/usr/libx32 -/usr/libexec");
    for (const std::string& path : own_programs()) allow_program(path, Presence::required);
    if (has_egress()) unit_.add("ExecPaths=/run/capgate");
    for (const auto& grant : policy_.programs) {
      const std::string suffix = "/" + grant.capability.program;
      const bool given = std::ranges::any_of(
          own_programs(), [&](const std::string& path) { return path.ends_with(suffix); });
      if (given) continue;
      unit_.because(grant.origins);
      allow_program("/usr/bin" + suffix, Presence::required);
    }
  }

  enum class Presence : unsigned char { required, optional };

  // On a system with one /usr, /bin is a second mount of /usr/bin.
  void allow_program(const std::string& path, Presence presence) {
    unit_.add(
        format("ExecPaths={}", unit_word((presence == Presence::optional ? "-" : "") + path)));
    for (const std::string_view directory : {"/bin/", "/sbin/"}) {
      const std::string whole = format("/usr{}", directory);
      if (!path.starts_with(whole)) continue;
      allow_program(format("{}{}", directory, path.substr(whole.size())), Presence::optional);
    }
  }

  void pass_environment() {
    unit_.because("environment: these, and the declared ones");
    unit_.add(format("Environment=PATH={} HOME=/tmp TMPDIR=/tmp LANG=C.UTF-8", sandbox_path));
    unit_.add("UnsetEnvironment=INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID");
    bool injects = false;
    for (const auto& grant : policy_.variables) {
      unit_.because(grant.origins);
      if (grant.capability.action == core::EnvCapability::Action::read) {
        unit_.add(format("PassEnvironment={}", grant.capability.name));
      } else if (!std::exchange(injects, true)) {
        unit_.add(format("EnvironmentFile=/etc/capgate/{}", names_.environment_file));
      }
    }
    for (const auto& grant : policy_.sockets) {
      if (grant.capability.kind != IpcCapability::Kind::x11) continue;
      unit_.because(grant.origins);
      unit_.add("PassEnvironment=DISPLAY");
    }
    if (!injects) return;
    artifact_.notes.push_back(
        format("env: injected values stand as NAME=VALUE in /etc/capgate/{}, which root alone "
               "should read; without the file the server does not start",
               names_.environment_file));
  }

  void collect_files() {
    const auto add = [&](std::string_view name, std::string contents) {
      artifact_.files.push_back(
          {.name = artifact_.texts.keep(name), .contents = std::move(contents)});
    };
    add(names_.socket, socket_unit(names_, input_.manifest.name));
    artifact_.files.push_back(std::move(unit_).take());
    if (has_egress()) {
      add(names_.egress_service, egress_unit(names_, input_.manifest.name));
      add(names_.egress_policy, egress_policy_yaml(input_));
    }
    add(names_.sysusers, format("u {} - \"MCP server\"\n", names_.user));
    add(names_.hosts_file, std::string(hosts));
  }

  void add_notes() {
    artifact_.notes.push_back(format(
        "fs: the server is the user {}, whom the granted files must be open to", names_.user));
    artifact_.notes.emplace_back(
        "exec: the server may start itself again, and what lies in /usr/lib and /usr/libexec");
    if (seccomp_needs(policy_).netlink_route) {
      artifact_.notes.emplace_back("ipc: systemd opens every protocol of netlink, not route alone");
    }
    if (has_egress()) {
      artifact_.notes.push_back(
          format("net: {} carries what is declared, and nothing else does", names_.egress_service));
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  UnitNames names_;
  Support support_;
  Artifact artifact_;
  FileBuilder unit_;
  bool grants_below_home_ = false;
};

}  // namespace

Checked<Artifact> lower_to_systemd(const Input& input) { return Systemd(input).lower(); }

}  // namespace capgate::lower
