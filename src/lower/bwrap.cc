#include "lower/bwrap.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "lower/common.h"
#include "lower/forwarder.h"
#include "lower/seccomp_shared.h"

namespace capgate::lower {
namespace {

using core::FsAction;
using core::IpcCapability;

constexpr unsigned seccomp_fd = 3;
constexpr unsigned environment_fd = 4;
constexpr unsigned first_file_fd = 5;

constexpr std::string_view program_directories[] = {
    "/usr/bin", "/usr/games", "/usr/local/bin", "/usr/local/games", "/usr/local/sbin", "/usr/sbin"};

// A directory that every Linux has and that is always empty.
constexpr std::string_view empty_directory = "proc/tty/ldisc";

// bwrap has no "if it exists" for a mount point, only for a source (--ro-bind-try), and it makes a
// missing mount point on the host. So the source goes through the target itself: the kernel
// resolves TARGET/../../..  only if TARGET is a directory, and then it leads to an empty one.
// Extra steps above the root stay at the root, so a symbolic link on the way does not matter.
std::string empty_if_directory(std::string_view target) {
  std::string source(target);
  source += '/';
  for (int i = 0; i < 24; ++i) source += "../";
  source += empty_directory;
  return source;
}

class Bwrap {
 public:
  explicit Bwrap(const Input& input)
      : input_(input),
        policy_(input.policy),
        home_(input.options.home.empty() ? default_home : input.options.home),
        support_("bwrap", input),
        argv_(artifact_) {
    artifact_.target = "bwrap";
    artifact_.argv.reserve(256);
    artifact_.lines.reserve(96);
    artifact_.fds.reserve(9);
  }

  Checked<Artifact> lower() {
    refuse_what_it_cannot_keep();
    artifact_.notes = policy_notes(input_);
    artifact_.env_injections = env_injections(policy_);
    isolate();
    mount_base_system();
    mount_generated_files();
    mount_private_places();
    mount_programs();
    mount_grants();
    mount_sockets();
    mount_clock();
    mount_forwarder();
    finish();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  void refuse_what_it_cannot_keep() {
    refuse_native_only(input_, support_);
    refuse_beyond_forwarder(input_, support_);
    for (const auto& grant : policy_.programs) {
      if (!input_.options.programs.empty()) break;
      support_.unsupported(grant.capability, grant.origins,
                           "without the server's own program every program stays visible",
                           "name it with --program, for example --program /usr/bin/node");
    }
    for (const auto& grant : policy_.limits) {
      if (grant.capability.kind == core::LimitCapability::Kind::disk) continue;
      support_.unsupported(grant.capability, grant.origins, "it sets no such limit",
                           "use --target docker or the native engine");
    }
  }

  void isolate() {
    argv_.because("isolation: every namespace is new");
    argv_.add("--unshare-user");
    argv_.add("--unshare-ipc");
    argv_.add("--unshare-pid");
    argv_.add("--unshare-net");
    argv_.add("--unshare-uts");
    argv_.add("--unshare-cgroup");
    if (!seccomp_needs(policy_).nested_sandbox) argv_.add("--disable-userns");
    argv_.because("identity: an unprivileged user, no capabilities, no terminal");
    argv_.add("--uid", sandbox_id);
    argv_.add("--gid", sandbox_id);
    argv_.add("--hostname", sandbox_hostname);
    argv_.add("--cap-drop", "ALL");
    argv_.add("--new-session");
    argv_.add("--die-with-parent");
    // Without it bwrap itself stays pid 1 inside, with the caller's environment in /proc/1/environ.
    argv_.because("environment: cleared, and not readable from a pid 1 that still holds it");
    argv_.add("--as-pid-1");
    argv_.add("--clearenv");
    argv_.add("--setenv", "PATH", sandbox_path);
    argv_.add("--setenv", "HOME", home_);
    argv_.add("--setenv", "TMPDIR", "/tmp");
    argv_.add("--setenv", "LANG", "C.UTF-8");
  }

  void mount_base_system() {
    argv_.because("base system, read-only");
    argv_.add("--ro-bind", "/usr", "/usr");
    argv_.add("--symlink", "usr/bin", "/bin");
    argv_.add("--symlink", "usr/lib", "/lib");
    argv_.add("--symlink", "usr/lib32", "/lib32");
    argv_.add("--symlink", "usr/lib64", "/lib64");
    argv_.add("--symlink", "usr/sbin", "/sbin");
    argv_.add("--ro-bind-try", "/nix/store", "/nix/store");
    for (const std::string_view path : base_etc_paths()) {
      argv_.add("--ro-bind-try", path, path);
    }
  }

  void mount_generated_files() {
    argv_.because("generated, so that nothing of the host's own is shown");
    unsigned fd = first_file_fd;
    for (const GeneratedFile& file : generated_etc_files(input_, home_, artifact_.texts)) {
      // Nothing can be mounted on top of one: bwrap has unlinked the file behind it.
      if (is_granted(policy_, file.path)) continue;
      argv_.add("--ro-bind-data", std::to_string(fd), file.path);
      artifact_.fds.push_back({.fd = fd, .purpose = file.path, .base64 = file.base64});
      ++fd;
    }
  }

  void mount_private_places() {
    argv_.because("private /proc, /dev, /tmp and HOME");
    argv_.add("--proc", "/proc");
    argv_.add("--tmpfs", "/dev");
    for (const std::string_view device :
         {"/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"}) {
      argv_.add("--dev-bind", device, device);
    }
    argv_.add("--symlink", "/proc/self/fd", "/dev/fd");
    argv_.add("--symlink", "/proc/self/fd/0", "/dev/stdin");
    argv_.add("--symlink", "/proc/self/fd/1", "/dev/stdout");
    argv_.add("--symlink", "/proc/self/fd/2", "/dev/stderr");
    const PlanLimit disk = limit_of(policy_, core::LimitCapability::Kind::disk);
    for (const std::string_view place :
         {std::string_view("/dev/shm"), std::string_view("/tmp"), home_}) {
      argv_.add("--size", std::to_string(disk.value), "--tmpfs", place);
    }
    argv_.add("--remount-ro", "/dev");
    close_proc();
  }

  // The kernel guards many files of /proc by root's uid alone, and when root starts bwrap the
  // server has it: a line in /proc/sys/kernel/core_pattern would run any program outside, as root.
  void close_proc() {
    if (!seccomp_needs(policy_).nested_sandbox) return argv_.add("--remount-ro", "/proc");
    // An inner sandbox writes its own /proc/self/uid_map, so here only what is not a process.
    argv_.add("--ro-bind", "/proc/sys", "/proc/sys");
    for (const std::string_view path :
         {"/proc/acpi", "/proc/bus", "/proc/driver", "/proc/fs", "/proc/irq", "/proc/mtrr",
          "/proc/scsi", "/proc/sysrq-trigger"}) {
      argv_.add("--ro-bind-try", path, path);
    }
  }

  // A directory that may be missing. So may the empty one on some future kernel, and then every
  // such mount would be left out in silence: hence one that must succeed.
  void hide_if_there(std::string_view directory) {
    if (!std::exchange(has_empty_directory_, true)) {
      const std::string empty = format("/{}", empty_directory);
      argv_.add("--ro-bind", empty, empty);
    }
    argv_.add("--ro-bind-try", empty_if_directory(directory), std::string(directory));
  }

  // With --program, the program directories hold those programs and the declared ones, nothing
  // else.
  void mount_programs() {
    if (input_.options.programs.empty()) {
      artifact_.notes.emplace_back(
          policy_.programs.empty()
              ? "exec: no child process can be started; programs below /usr stay visible (name the "
                "server's own with --program to hide the others)"
              : "exec: every program below /usr can be started");
      return;
    }
    const std::vector<std::string> visible = visible_programs();
    const auto is_filled = [&](std::string_view directory) {
      return std::ranges::any_of(visible, [&](const std::string& program) {
        return core::is_at_or_below(program, directory);
      });
    };
    argv_.because("program directories hold only the server's program and declared ones");
    // The empty ones first: where /usr/sbin is a link to bin, the filled one must lie on top.
    for (const std::string_view directory : program_directories) {
      if (is_filled(directory)) continue;
      hide_if_there(directory);
    }
    for (const std::string_view directory : program_directories) {
      if (is_filled(directory)) argv_.add("--tmpfs", directory);
    }
    for (const std::string& program : visible) {
      because_of_program(program);
      argv_.add("--ro-bind", program, program);
    }
    argv_.because("program directories hold only the server's program and declared ones");
    for (const std::string_view directory : program_directories) {
      if (is_filled(directory)) argv_.add("--remount-ro", directory);
    }
    artifact_.notes.emplace_back(
        "exec: programs that a package keeps below /usr/lib or /usr/libexec stay visible");
    if (policy_.programs.empty()) return;
    artifact_.notes.emplace_back(
        "exec: a program that the server itself writes into /tmp, HOME or a writable grant can be "
        "started too; the native engine refuses that");
  }

  // --program paths, and /usr/bin/NAME for each declared program that none of them is.
  [[nodiscard]] std::vector<std::string> visible_programs() const {
    std::vector<std::string> out = input_.options.programs;
    for (const auto& grant : policy_.programs) {
      const std::string suffix = "/" + grant.capability.program;
      const bool given = std::ranges::any_of(
          input_.options.programs, [&](const std::string& path) { return path.ends_with(suffix); });
      if (!given) out.push_back("/usr/bin" + suffix);
    }
    sort_and_deduplicate(out);
    return out;
  }

  void because_of_program(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const auto program = std::ranges::lower_bound(
        policy_.programs, name, {},
        [](const auto& grant) { return std::string_view(grant.capability.program); });
    if (program != policy_.programs.end() && program->capability.program == name) {
      argv_.because(program->origins);
    } else {
      argv_.because("--program");
    }
  }

  void mount_grants() {
    bool writes = false;
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      if (is_private_tmp(fs) || fs.path.shape == core::PathPattern::Shape::entries) continue;
      const bool reads_only = fs.actions.has(FsAction::read);
      writes |= !reads_only;
      const std::string_view path = fs.path.base;
      argv_.because(grant.origins);
      argv_.add(reads_only ? "--ro-bind" : "--bind", path, path);
      mask_credentials(grant);
    }
    if (policy_.files.empty()) return;
    artifact_.notes.emplace_back("fs: bwrap follows symbolic links in granted paths");
    if (writes) {
      artifact_.notes.emplace_back(
          "fs: files that host programs run later (.git/hooks, .vscode, .envrc ...) are not "
          "protected inside writable grants; the native engine protects them");
    }
  }

  // Hides credential directories below a grant. A file can only be hidden with its directory.
  void mask_credentials(const core::Granted<core::FsCapability>& grant) {
    const std::string& base = grant.capability.path.base;
    std::vector<std::string> masks;
    for (const core::HiddenPath& hidden : core::credentials_below(base, input_.options.home)) {
      if (is_granted(policy_, hidden.path)) continue;
      std::string directory = hidden.path;
      if (hidden.entry->kind == core::SensitiveKind::file) {
        directory.resize(directory.rfind('/'));
        if (directory == base) {
          support_.unsupported(
              grant.capability, grant.origins,
              format("it cannot hide {} without hiding the whole grant", hidden.path),
              "grant what is needed below it");
          continue;
        }
      }
      masks.push_back(std::move(directory));
    }
    sort_and_deduplicate(masks);
    for (const std::string& mask : masks) {
      if (is_below_another(mask, masks)) continue;
      if (holds_a_grant(policy_, mask)) {
        argv_.add("--tmpfs", mask);  // it exists, since a grant below it must
      } else {
        hide_if_there(mask);
      }
    }
    if (!masks.empty()) {
      artifact_.notes.push_back(
          format("fs: credential paths below {} are hidden", escape_for_terminal(base)));
    }
  }

  static bool is_below_another(std::string_view path, const std::vector<std::string>& others) {
    return std::ranges::any_of(others, [&](const std::string& other) {
      return other != path && core::is_at_or_below(path, other);
    });
  }

  void mount_sockets() {
    for (const auto& grant : policy_.sockets) {
      const std::string path = socket_path(grant, input_, support_);
      if (path.empty()) continue;
      argv_.because(grant.origins);
      argv_.add("--ro-bind", path, path);
      if (grant.capability.kind == IpcCapability::Kind::dbus_session) {
        argv_.add("--setenv", "DBUS_SESSION_BUS_ADDRESS", "unix:path=" + path);
      }
    }
  }

  void mount_clock() {
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      argv_.because(grant.origins);
      argv_.add("--ro-bind", "/usr/share/zoneinfo", "/usr/share/zoneinfo");
      argv_.add("--ro-bind", "/etc/localtime", "/etc/localtime");
    }
  }

  void mount_forwarder() {
    if (!uses_forwarder(policy_)) return;
    argv_.because(forwarder_reason);
    argv_.add("--ro-bind", input_.options.egress_dir, forwarder_directory);
    add_forwarder_notes(input_, artifact_.notes);
  }

  void finish() {
    argv_.because("the root itself is read-only once everything is in place");
    argv_.add("--remount-ro", "/");
    argv_.add("--chdir", home_);
    if (!artifact_.env_injections.empty()) {
      argv_.because(
          "declared variables: --setenv NAME VALUE words, NUL-terminated, on the descriptor");
      argv_.add("--args", std::to_string(environment_fd));
      artifact_.fds.push_back({.fd = environment_fd,
                               .purpose = "environment",
                               .base64 = {},
                               .names = artifact_.env_injections});
    }
    argv_.because("system calls: allowlist");
    argv_.add("--seccomp", std::to_string(seccomp_fd));
    SeccompNeeds needs = seccomp_needs(policy_);
    needs.forwarder = uses_forwarder(policy_);
    artifact_.fds.push_back({.fd = seccomp_fd,
                             .purpose = "seccomp",
                             .base64 = shared_filter(input_.options.arch, needs).base64});
    std::ranges::sort(artifact_.fds, {}, &Descriptor::fd);
    argv_.because("the command follows");
    argv_.add("--");
    if (!needs.forwarder) return;
    argv_.because(forwarder_reason);
    argv_.add(forwarder_program);
    for (const std::string_view word : forward_words(needs)) argv_.add(word);
  }

  const Input& input_;
  const core::Policy& policy_;
  std::string_view home_;
  Support support_;
  Artifact artifact_;
  ArgvBuilder argv_;
  bool has_empty_directory_ = false;
};

}  // namespace

Checked<Artifact> lower_to_bwrap(const Input& input) { return Bwrap(input).lower(); }

}  // namespace capgate::lower
