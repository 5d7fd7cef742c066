// What of a policy a target holds, grant by grant: the lowering itself is asked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lower/artifact.h"
#include "lower/targets.h"

namespace capgate::review {

struct HeldBy {
  std::map<std::string, std::string> refused;  // canonical capability, and why
  std::vector<std::string> problems;           // refusals that belong to no single grant
  std::vector<std::string> notes;              // of the artifact
};

[[nodiscard]] HeldBy ask_target(const lower::Target& target, const lower::Input& input);

}  // namespace capgate::review
