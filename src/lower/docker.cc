#include "lower/docker.h"

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "lower/common.h"
#include "lower/seccomp_shared.h"

namespace capgate::lower {
namespace {

using core::FsAction;
using core::IpcCapability;
using core::LimitCapability;

constexpr unsigned seccomp_fd = 3;

// --mount takes comma-separated fields in the syntax of CSV: a field with a comma or a quote stands
// in quotes, with inner quotes doubled. So no path can add a field of its own.
std::string csv_field(std::string_view key, std::string_view value) {
  std::string field = format("{}={}", key, value);
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string quoted_field = "\"";
  for (const char c : field) {
    if (c == '"') quoted_field += '"';
    quoted_field += c;
  }
  return quoted_field + '"';
}

// The docker command gives every container the proxies of its own configuration, with their
// passwords, unless the variables are named already.
constexpr std::string_view proxy_settings[] = {
    "ALL_PROXY=", "FTP_PROXY=", "HTTPS_PROXY=", "HTTP_PROXY=", "NO_PROXY=",
    "all_proxy=", "ftp_proxy=", "https_proxy=", "http_proxy=", "no_proxy="};

enum class Access : unsigned char { read_only, read_write };

// --mount, not --volume: --volume makes a missing source as an empty directory of root, and cannot
// name a path that holds ':'. Docker does not make mounts below a read-only one read-only, so they
// are left out.
std::string bind_mount(std::string_view path, Access access) {
  std::string mount =
      format("type=bind,{},{}", csv_field("source", path), csv_field("target", path));
  if (access == Access::read_only) mount += ",readonly,bind-nonrecursive=true";
  return mount;
}

class Docker {
 public:
  explicit Docker(const Input& input)
      : input_(input), policy_(input.policy), support_("docker", input), argv_(artifact_) {
    artifact_.target = "docker";
  }

  Checked<Artifact> lower() {
    refuse_what_it_cannot_keep();
    artifact_.notes = policy_notes(input_);
    artifact_.env_injections = env_injections(policy_);
    isolate();
    limit();
    mount_grants();
    mount_sockets();
    mount_clock();
    pass_environment();
    add_notes();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  void refuse_what_it_cannot_keep() {
    refuse_native_only(input_, support_);
    for (const auto& grant : policy_.programs) {
      support_.unsupported(grant.capability, grant.origins,
                           "every program of the image can be started",
                           "use --target bwrap or the native engine");
    }
    for (const auto& grant : policy_.limits) {
      if (grant.capability.kind != LimitCapability::Kind::time) continue;
      support_.unsupported(grant.capability, grant.origins, "it has no time limit",
                           "use the native engine");
    }
    for (const auto& grant : policy_.files) {
      const std::string& base = grant.capability.path.base;
      if (is_private_tmp(grant.capability)) continue;
      const auto hidden = core::credentials_below(base, input_.options.home);
      if (hidden.empty()) continue;
      support_.unsupported(grant.capability, grant.origins,
                           format("it cannot hide {} inside the grant", hidden.front().path),
                           "grant what is needed below it, or use the native engine");
    }
  }

  // The order of these flags is that of the documented artifact; later readers compare with it.
  void isolate() {
    argv_.because("isolation: removed at exit, no capabilities, no new privileges");
    argv_.add("--rm");
    argv_.add("--cap-drop", "ALL");
    argv_.add("--security-opt", "no-new-privileges");
    argv_.because("system calls: allowlist, read from the descriptor");
    argv_.add("--security-opt", format("seccomp=/dev/fd/{}", seccomp_fd));
    // docker's --init starts the server as a child, so the filter must let processes be made.
    SeccompNeeds needs = seccomp_needs(policy_);
    needs.processes = true;
    artifact_.fds.push_back(
        {.fd = seccomp_fd, .purpose = "seccomp", .base64 = shared_docker_profile(needs).base64});
    argv_.because("isolation: read-only root, private /tmp, unprivileged user, own namespaces");
    if (!input_.options.writable_root) argv_.add("--read-only");
    argv_.add("--tmpfs", format("/tmp:rw,noexec,nosuid,nodev,size={}",
                                limit_of(policy_, LimitCapability::Kind::disk).value));
    argv_.add("--user", input_.options.user);
    argv_.add("--network", "none");
    argv_.add("--ipc", "private");
    argv_.add("--hostname", sandbox_hostname);
    argv_.add("--init");
    argv_.add("-i");
  }

  void limit() {
    add_limit(LimitCapability::Kind::pids, "--pids-limit", "");
    add_limit(LimitCapability::Kind::memory, "--memory", "");
    add_limit(LimitCapability::Kind::memory, "--memory-swap", "");
    add_limit(LimitCapability::Kind::files, "--ulimit", "nofile=");
    const PlanLimit cpu = limit_of(policy_, LimitCapability::Kind::cpu);
    if (cpu.value == 0) return;
    because_of_limit(LimitCapability::Kind::cpu);
    argv_.add("--cpus", format("{}.{:02}", cpu.value / 100, cpu.value % 100));
  }

  void add_limit(LimitCapability::Kind kind, std::string_view flag, std::string_view prefix) {
    because_of_limit(kind);
    argv_.add(flag, format("{}{}", prefix, limit_of(policy_, kind).value));
  }

  void because_of_limit(LimitCapability::Kind kind) {
    argv_.because("limits: safe defaults");
    for (const auto& grant : policy_.limits) {
      if (grant.capability.kind == kind) argv_.because(grant.origins);
    }
  }

  void mount_grants() {
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      if (is_private_tmp(fs) || fs.path.shape == core::PathPattern::Shape::entries) continue;
      argv_.because(grant.origins);
      argv_.add("--mount",
                bind_mount(fs.path.base, fs.actions.has(FsAction::read) ? Access::read_only
                                                                        : Access::read_write));
    }
  }

  void mount_sockets() {
    for (const auto& grant : policy_.sockets) {
      const std::string path = socket_path(grant, input_, support_);
      if (path.empty()) continue;
      argv_.because(grant.origins);
      argv_.add("--mount", bind_mount(path, Access::read_only));
      if (grant.capability.kind == IpcCapability::Kind::dbus_session) {
        argv_.add("--env", "DBUS_SESSION_BUS_ADDRESS=unix:path=" + path);
      }
    }
  }

  void mount_clock() {
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      argv_.because(grant.origins);
      argv_.add("--mount", bind_mount("/usr/share/zoneinfo", Access::read_only));
      argv_.add("--mount", bind_mount("/etc/localtime", Access::read_only));
    }
  }

  void pass_environment() {
    argv_.because("environment: HOME is the private /tmp");
    argv_.add("--env", "HOME=/tmp");
    argv_.because("environment: no proxy from the configuration of the docker command");
    for (const std::string_view setting : proxy_settings) {
      const std::string_view name = setting.substr(0, setting.size() - 1);
      if (!contains(artifact_.env_injections, name)) argv_.add("--env", setting);
    }
    for (const auto& grant : policy_.variables) {
      argv_.because(grant.origins);
      argv_.add("--env", grant.capability.name);
    }
    for (const auto& grant : policy_.sockets) {
      if (grant.capability.kind != IpcCapability::Kind::x11) continue;
      argv_.because(grant.origins);
      argv_.add("--env", "DISPLAY");
    }
  }

  void add_notes() {
    artifact_.notes.emplace_back(
        "exec: docker starts the server below its own init, so programs of the image can be "
        "started");
    if (!artifact_.env_injections.empty()) {
      artifact_.notes.emplace_back(
          "env: docker takes the values of --env NAME from the environment of the docker command");
    }
    if (!policy_.connect.empty() || !policy_.listen.empty()) {
      artifact_.notes.emplace_back(
          "net: the container has no network; declared endpoints need capgate's broker");
    }
    if (!policy_.files.empty()) {
      artifact_.notes.emplace_back(
          "fs: files keep their owners: choose with --user the user that may use the grants");
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  Artifact artifact_;
  ArgvBuilder argv_;
};

}  // namespace

Checked<Artifact> lower_to_docker(const Input& input) { return Docker(input).lower(); }

}  // namespace capgate::lower
