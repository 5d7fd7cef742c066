// What `run --dry-run` and `run --report` print.
//
// The report says which guarantee holds by which mechanism, and what does not hold. Each line must
// be true of this very run: it is made from what was bound and held, not from what was wanted.
#pragma once

#include <string>

#include "lower/artifact.h"
#include "sandbox/bind.h"
#include "sandbox/limits.h"
#include "sandbox/supervise.h"

namespace capgate::sandbox {

// One run, for the report.
struct Run {
  const lower::Artifact& artifact;
  const lower::Input& input;
  const Bound& bound;
  const Limits& limits;
  const Launcher& launcher;
  const HostUser& user;
  const Outcome& outcome;
  const std::string audit;  // the file of the network's decisions; empty without net
};

[[nodiscard]] std::string print_bound(const lower::Artifact& artifact, const lower::Input& input,
                                      const Bound& bound);

[[nodiscard]] std::string print_report(const Run& run);

}  // namespace capgate::sandbox
