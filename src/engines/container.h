// What is asked of docker or podman before a container is started.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "engines/engine.h"
#include "sandbox/limits.h"
#include "sandbox/prelude.h"

namespace capgate::engines {

struct Container {
  std::string image_id;                    // of what was named: that one runs, and no newer one
  std::vector<std::string> environment;    // of the engine's command, without declared variables
  std::vector<sandbox::HeldLimit> limits;  // by the engine
};

// Whether the engine answers, has the image, and holds the limits that the policy states.
[[nodiscard]] std::expected<Container, sandbox::Refusal> look_at_engine(
    const EngineRun& run, const sandbox::Prepared& prepared);

}  // namespace capgate::engines
