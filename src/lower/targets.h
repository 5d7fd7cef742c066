// The targets of `compile`, by name. Adding one: a lowering function with its coverage, a name and
// a line here and in targets.cc, a golden for every case (CONTRIBUTING.md).
#pragma once

#include <span>
#include <string_view>

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

struct Target {
  // A whole target answers for every kind and refuses what it cannot keep; a partial one is a part
  // of some sandbox, and lists the rest in `notCovered`.
  enum class Extent : unsigned char { whole, partial };
  // What the artifact names besides the policy, and the caller therefore must say.
  enum class Holds : unsigned char { nothing, command, image };

  std::string_view name;
  std::string_view summary;
  Checked<Artifact> (*lower)(const Input& input);
  const Coverage* coverage;
  Extent extent = Extent::whole;
  Holds holds = Holds::nothing;
  bool files = false;  // the artifact has files, besides argv or instead of it
};

inline constexpr std::string_view default_target = "bwrap";
inline constexpr std::string_view target_names[] = {
    "apparmor", "bwrap", "compose", "docker",   "egress",  "firejail", "kubernetes", "landlock",
    "oci",      "plan",  "podman",  "seatbelt", "seccomp", "systemd",  "worker"};

[[nodiscard]] std::span<const Target> targets();
[[nodiscard]] const Target* find_target(std::string_view name);

// The artifact, with `notCovered` filled in for a partial target.
[[nodiscard]] Checked<Artifact> lower_to(const Target& target, const Input& input);

}  // namespace capgate::lower
