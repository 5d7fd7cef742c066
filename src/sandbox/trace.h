// run --trace: what the Plan refuses, one line each with the capability that would allow it.
//
// The filter's refusals become questions to the supervisor, which answers exactly what the filter
// would have; calls that name a path, a program or a socket are looked at and let through to the
// kernel, which decides as without tracing. So tracing only observes: a lost or wrong observation
// changes no decision.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lower/bpf.h"
#include "sandbox/bind.h"
#include "sys/fd.h"

namespace capgate::sandbox {

// The filter with questions in place of refusals and of the calls that are looked at.
[[nodiscard]] lower::BpfProgram traced(const lower::BpfProgram& filter);

class Tracer {
 public:
  Tracer(lower::BpfProgram filter, const Bound& bound, sys::Fd output)
      : filter_(std::move(filter)), bound_(bound), output_(std::move(output)) {}

  void listen(sys::Fd listener) { listener_ = std::move(listener); }
  [[nodiscard]] int fd() const { return listener_.get(); }
  void step();

 private:
  void say(const std::string& line);

  lower::BpfProgram filter_;
  const Bound& bound_;
  sys::Fd output_;
  sys::Fd listener_;
  std::set<std::string> said_;
};

}  // namespace capgate::sandbox
