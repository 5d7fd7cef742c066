// What `run --report` says of a run by another engine: the shape of the native one's.
#pragma once

#include <string>
#include <vector>

#include "engines/engine.h"
#include "sandbox/limits.h"
#include "sandbox/supervise.h"

namespace capgate::engines {

struct Ended {
  const EngineRun& run;
  const std::vector<sandbox::HeldLimit>& limits;
  bool memory_is_watched = false;
  const sandbox::Outcome& outcome;
  std::string audit;  // empty without net
};

[[nodiscard]] std::string print_report(const Ended& ended);

}  // namespace capgate::engines
