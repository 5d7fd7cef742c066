#include "lower/podman.h"

#include "base/format.h"
#include "base/text.h"
#include "lower/container.h"
#include "lower/container_flags.h"
#include "lower/forwarder.h"

namespace capgate::lower {
namespace {

// Podman's --mount is split at commas before 4.6, and read as CSV since: only what is the same in
// both may be written.
bool fits_a_mount(std::string_view path) {
  return path.find_first_of(",\"") == std::string_view::npos;
}

std::string bind_mount(const ContainerMount& mount) {
  std::string words = format("type=bind,source={},target={}", mount.source, mount.target);
  if (mount.access == ContainerMount::Access::read_only) {
    words += ",readonly,bind-nonrecursive=true";
  }
  return words;
}

void refuse_odd_paths(const Input& input, Support& support) {
  constexpr std::string_view reason = "its --mount cannot name a path with a comma or a quote";
  constexpr std::string_view help = "use a path without them, or --target docker";
  for (const auto& grant : input.policy.files) {
    if (fits_a_mount(grant.capability.path.base)) continue;
    support.impossible(grant.capability, grant.origins, reason, std::string(help));
  }
  for (const auto& grant : input.policy.sockets) {
    const bool named = grant.capability.kind == core::IpcCapability::Kind::unix_path;
    const std::string_view path = named ? grant.capability.path : input.options.runtime_dir;
    if (fits_a_mount(path)) continue;
    support.impossible(grant.capability, grant.origins, reason, std::string(help));
  }
  if (!uses_forwarder(input.policy) || fits_a_mount(input.options.egress_dir)) return;
  const auto& grant = input.policy.connect.front();
  support.impossible(grant.capability, grant.origins, reason,
                     "choose another directory with --egress-dir");
}

// The caller becomes the server's user, so that the caller's files are the server's to use.
std::string caller_as(std::string_view user) {
  const auto parts = split(user, ':');
  return format("keep-id:uid={},gid={}", parts[0], parts[1]);
}

std::vector<ContainerFlag> own_flags(const Options& options) {
  std::vector<ContainerFlag> flags;
  flags.reserve(5);
  // Else /run, /var/tmp and /dev/shm of a read-only root are writable, without a limit.
  if (!options.writable_root) flags.push_back({"--read-only-tmpfs=false", {}});
  if (!options.rootful) flags.push_back({"--userns", caller_as(options.user)});
  flags.push_back({"--cgroupns", "private"});
  flags.push_back({"--env-host=false", {}});
  flags.push_back({"--http-proxy=false", {}});
  return flags;
}

void add_notes(const Options& options, std::vector<std::string>& notes) {
  if (options.rootful) return;
  notes.emplace_back(
      "podman: for a podman without root, whose caller becomes the server's user; root's needs "
      "--rootful");
  notes.emplace_back(
      "limit: without root podman keeps memory, pids and cpu with cgroups v2 only; with v1 it says "
      "that it ignores them, and starts");
}

}  // namespace

Checked<Artifact> lower_to_podman(const Input& input) {
  Support support("podman", input);
  refuse_odd_paths(input, support);
  const Container container = container_of(input, CallersProxies::stay_outside, support);
  const std::vector<ContainerFlag> flags = own_flags(input.options);
  Artifact artifact = container_flags({.name = "podman",
                                       .bind_mount = bind_mount,
                                       .tmpfs_options = ",notmpcopyup",
                                       .own_flags = flags},
                                      container, input);
  add_notes(input.options, artifact.notes);
  artifact.unenforced = TRY(std::move(support).finish());
  return artifact;
}

}  // namespace capgate::lower
