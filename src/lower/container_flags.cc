#include "lower/container_flags.h"

#include "base/format.h"
#include "lower/forwarder.h"
#include "lower/seccomp_shared.h"

namespace capgate::lower {
namespace {

constexpr unsigned seccomp_fd = 3;

class Flags {
 public:
  Flags(const ContainerEngine& engine, const Container& container, const Input& input)
      : engine_(engine), container_(container), input_(input), argv_(artifact_) {
    artifact_.target = engine.name;
  }

  Artifact build() {
    artifact_.notes = policy_notes(input_);
    artifact_.env_injections = env_injections(input_.policy);
    isolate();
    limit();
    mount();
    start_by_forwarder();
    pass_environment();
    add_notes();
    return std::move(artifact_);
  }

 private:
  // The order of these flags is that of the documented artifact; later readers compare with it.
  void isolate() {
    argv_.because("isolation: removed at exit, no capabilities, no new privileges");
    argv_.add("--rm");
    argv_.add("--cap-drop", "ALL");
    argv_.add("--security-opt", "no-new-privileges");
    argv_.because("system calls: allowlist, read from the descriptor");
    argv_.add("--security-opt", format("seccomp=/dev/fd/{}", seccomp_fd));
    artifact_.fds.push_back({.fd = seccomp_fd,
                             .purpose = "seccomp",
                             .base64 = shared_docker_profile(container_.needs).base64});
    argv_.because("isolation: read-only root, private /tmp, unprivileged user, own namespaces");
    if (!input_.options.writable_root) argv_.add("--read-only");
    argv_.add("--tmpfs", format("/tmp:rw,noexec,nosuid,nodev,size={}{}", container_.disk.value,
                                engine_.tmpfs_options));
    argv_.add("--user", input_.options.user);
    argv_.add("--network", "none");
    argv_.add("--ipc", "private");
    argv_.add("--hostname", sandbox_hostname);
    argv_.add("--init");
    argv_.add("-i");
    for (const ContainerFlag& own : engine_.own_flags) {
      if (own.value.empty()) {
        argv_.add(own.flag);
      } else {
        argv_.add(own.flag, own.value);
      }
    }
  }

  void limit() {
    limit(container_.pids, "--pids-limit", "");
    limit(container_.memory, "--memory", "");
    limit(container_.memory, "--memory-swap", "");
    limit(container_.files, "--ulimit", "nofile=");
    if (container_.cpu.value == 0) return;
    because(container_.cpu.cause);
    argv_.add("--cpus", processors(container_.cpu));
  }

  void limit(const ContainerLimit& limit, std::string_view flag, std::string_view prefix) {
    because(limit.cause);
    argv_.add(flag, format("{}{}", prefix, limit.value));
  }

  void because(const Cause& cause) {
    if (cause.origins == nullptr) {
      argv_.because(cause.reason);
    } else {
      argv_.because(*cause.origins);
    }
  }

  void mount() {
    for (const ContainerMount& mount : container_.mounts) {
      argv_.because(*mount.origins);
      argv_.add("--mount", engine_.bind_mount(mount));
    }
  }

  void start_by_forwarder() {
    if (!container_.forwards) return;
    argv_.because(forwarder_reason);
    argv_.add("--mount", engine_.bind_mount({.source = input_.options.egress_dir,
                                             .target = std::string(forwarder_directory)}));
    argv_.add("--entrypoint", forwarder_program);
    artifact_.command_prefix = command_prefix(container_);
  }

  void pass_environment() {
    for (const ContainerVariable& variable : container_.variables) {
      because(variable.cause);
      argv_.add("--env", variable.setting);
    }
  }

  void add_notes() {
    artifact_.notes.push_back(
        format("exec: {} starts the server below its own init, so programs of the image can be "
               "started",
               engine_.name));
    if (!artifact_.env_injections.empty()) {
      artifact_.notes.push_back(
          format("env: {0} takes the values of --env NAME from the environment of the {0} command",
                 engine_.name));
    }
    if (container_.forwards) {
      add_forwarder_notes(input_, artifact_.notes);
      artifact_.notes.push_back(
          format("net: {} run ARGV IMAGE COMMANDPREFIX COMMAND: the forwarder takes the place of "
                 "the image's own ENTRYPOINT and CMD, so the whole command must be given",
                 engine_.name));
    }
    if (!input_.policy.files.empty()) {
      artifact_.notes.emplace_back(
          "fs: files keep their owners: choose with --user the user that may use the grants");
    }
  }

  const ContainerEngine& engine_;
  const Container& container_;
  const Input& input_;
  Artifact artifact_;
  ArgvBuilder argv_;
};

}  // namespace

Artifact container_flags(const ContainerEngine& engine, const Container& container,
                         const Input& input) {
  return Flags(engine, container, input).build();
}

}  // namespace capgate::lower
