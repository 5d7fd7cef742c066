#include "lower/targets.h"

#include <algorithm>

#include "lower/apparmor.h"
#include "lower/bwrap.h"
#include "lower/compose.h"
#include "lower/docker.h"
#include "lower/egress.h"
#include "lower/firejail.h"
#include "lower/kubernetes.h"
#include "lower/landlock.h"
#include "lower/oci.h"
#include "lower/podman.h"
#include "lower/seatbelt.h"
#include "lower/systemd.h"
#include "lower/to_plan.h"
#include "lower/to_seccomp.h"
#include "lower/worker.h"

namespace capgate::lower {
namespace {

constexpr Target table[] = {
    {.name = "apparmor",
     .summary = "an AppArmor profile",
     .lower = lower_to_apparmor,
     .coverage = &apparmor_coverage,
     .extent = Target::Extent::partial,
     .files = true},
    {.name = "bwrap",
     .summary = "flags for bubblewrap, ready for execFile",
     .lower = lower_to_bwrap,
     .coverage = &bwrap_coverage},
    {.name = "compose",
     .summary = "a compose file, with the broker as a second service",
     .lower = lower_to_compose,
     .coverage = &compose_coverage,
     .holds = Target::Holds::image,
     .files = true},
    {.name = "docker",
     .summary = "flags for docker run",
     .lower = lower_to_docker,
     .coverage = &docker_coverage},
    {.name = "egress",
     .summary = "rules for squid, nftables, Envoy, mitmproxy or capgate egress",
     .lower = lower_to_egress,
     .coverage = &egress_coverage,
     .extent = Target::Extent::partial,
     .files = true},
    {.name = "firejail",
     .summary = "a firejail profile",
     .lower = lower_to_firejail,
     .coverage = &firejail_coverage,
     .extent = Target::Extent::partial,
     .files = true},
    {.name = "kubernetes",
     .summary = "a restricted Deployment, its policies and its egress",
     .lower = lower_to_kubernetes,
     .coverage = &kubernetes_coverage,
     .holds = Target::Holds::image,
     .files = true},
    {.name = "landlock",
     .summary = "flags for landrun",
     .lower = lower_to_landlock,
     .coverage = &landlock_coverage,
     .extent = Target::Extent::partial},
    {.name = "oci",
     .summary = "config.json of a bundle for crun or runc",
     .lower = lower_to_oci,
     .coverage = &oci_coverage,
     .holds = Target::Holds::command,
     .files = true},
    {.name = "plan",
     .summary = "what capgate's own engine carries out",
     .lower = lower_to_plan,
     .coverage = &plan_coverage},
    {.name = "podman",
     .summary = "flags for podman run",
     .lower = lower_to_podman,
     .coverage = &podman_coverage},
    {.name = "seatbelt",
     .summary = "a profile for sandbox-exec of macOS, and a launcher",
     .lower = lower_to_seatbelt,
     .coverage = &seatbelt_coverage,
     .files = true},
    {.name = "seccomp",
     .summary = "the system call filter alone, as JSON and as BPF",
     .lower = lower_to_seccomp,
     .coverage = &seccomp_coverage,
     .extent = Target::Extent::partial,
     .files = true},
    {.name = "systemd",
     .summary = "hardened units: a socket, the server, its egress",
     .lower = lower_to_systemd,
     .coverage = &systemd_coverage,
     .holds = Target::Holds::command,
     .files = true},
    {.name = "worker",
     .summary = "options for a Worker of Node, and a module that starts it",
     .lower = lower_to_worker,
     .coverage = &worker_coverage,
     .extent = Target::Extent::partial,
     .files = true},
};

static_assert(std::ranges::equal(table, target_names, {}, &Target::name));

}  // namespace

std::span<const Target> targets() { return table; }

const Target* find_target(std::string_view name) {
  const auto* target = std::ranges::find(table, name, &Target::name);
  return target == std::end(table) ? nullptr : target;
}

Checked<Artifact> lower_to(const Target& target, const Input& input) {
  Artifact artifact = TRY(target.lower(input));
  if (target.extent == Target::Extent::whole) return artifact;
  core::for_each_grant(input.policy, [&](const core::Capability& capability, const auto&) {
    if (cover_of(*target.coverage, capability).level == Cover::Level::no) {
      artifact.not_covered.push_back(print(capability));
    }
  });
  return artifact;
}

}  // namespace capgate::lower
