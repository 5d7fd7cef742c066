#include "lower/targets.h"

#include <algorithm>

#include "lower/bwrap.h"
#include "lower/docker.h"
#include "lower/kubernetes.h"
#include "lower/systemd.h"
#include "lower/to_plan.h"

namespace capgate::lower {
namespace {

constexpr Target table[] = {
    {"bwrap", "flags for bubblewrap, ready for execFile", lower_to_bwrap, &bwrap_coverage},
    {"docker", "flags for docker run", lower_to_docker, &docker_coverage},
    {"kubernetes", "a restricted Deployment, its policies and its egress", lower_to_kubernetes,
     &kubernetes_coverage, Target::Extent::whole, Target::Holds::image, true},
    {"plan", "what capgate's own engine carries out", lower_to_plan, &plan_coverage},
    {"systemd", "hardened units: a socket, the server, its egress", lower_to_systemd,
     &systemd_coverage, Target::Extent::whole, Target::Holds::command, true},
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
