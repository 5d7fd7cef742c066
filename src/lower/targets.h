// The targets of `compile`, by name. Adding one: a lowering function, a line in targets.cc, a
// golden for every case (CONTRIBUTING.md).
#pragma once

#include <span>
#include <string_view>

#include "lower/artifact.h"

namespace capgate::lower {

struct Target {
  std::string_view name;
  std::string_view summary;
  Checked<Artifact> (*lower)(const Input& input);
};

[[nodiscard]] std::span<const Target> targets();  // the first one is the default
[[nodiscard]] const Target* find_target(std::string_view name);

}  // namespace capgate::lower
