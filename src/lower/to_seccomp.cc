#include "lower/to_seccomp.h"

#include "base/format.h"
#include "lower/common.h"
#include "lower/seccomp_shared.h"

namespace capgate::lower {
namespace {

// The filter decides these alone: the server's own sockets, and one protocol of netlink.
bool is_kept(const core::IpcCapability& ipc) {
  using enum core::IpcCapability::Kind;
  return ipc.kind == self || ipc.kind == netlink_route;
}

}  // namespace

Checked<Artifact> lower_to_seccomp(const Input& input) {
  Support support("seccomp", input);
  Artifact artifact;
  artifact.target = "seccomp";
  const SeccompNeeds needs = seccomp_needs(input.policy);
  const Arch arch = input.options.arch;
  artifact.files.push_back({.name = "seccomp.json", .contents = shared_docker_profile(needs).json});
  artifact.files.push_back({.name = "seccomp.bpf",
                            .contents = to_bytes(shared_filter(arch, needs).program),
                            .binary = true});
  artifact.env_injections = env_injections(input.policy);
  artifact.notes = policy_notes(input);
  artifact.notes.push_back(
      format("seccomp: seccomp.bpf is for {}, seccomp.json for every architecture; install the "
             "filter last, with no_new_privs set, as the step before the server's execve",
             arch_name(arch)));
  if (!needs.processes) {
    artifact.notes.emplace_back(
        "exec: no child process can be started, so the engine must start the server itself, "
        "without an init before it");
  }
  for (const auto& grant : input.policy.programs) {
    artifact.not_covered.push_back(print(core::Capability(grant.capability)));
  }
  for (const auto& grant : input.policy.sockets) {
    if (is_kept(grant.capability)) continue;
    artifact.not_covered.push_back(print(core::Capability(grant.capability)));
  }
  artifact.unenforced = TRY(std::move(support).finish());
  return artifact;
}

}  // namespace capgate::lower
