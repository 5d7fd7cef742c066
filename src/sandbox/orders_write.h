// The bound plan as the block that capgate-init reads (orders.h).
#pragma once

#include <span>
#include <string>

#include "lower/bpf.h"
#include "sandbox/bind.h"
#include "sandbox/secrets.h"

namespace capgate::sandbox {

// What belongs to one launch and not to the plan.
struct Launch {
  lower::BpfProgram filter;
  lower::ExecToken token{};
  std::vector<BoundLimit> limits;
  bool listen = false;                          // the filter wants a listener (--trace)
  bool bound_buffers = false;                   // of TCP sockets: no cgroup counts memory
  bool drop_groups = false;                     // the id map allows it: started as root
  orders::Step fail_step = orders::Step::none;  // tests
  std::vector<int> trees;  // for each mount: its detached tree's descriptor in init, or -1
  std::span<const InjectedSecret> injected = {};  // values of `bound.injected`
};

// It holds values of secrets: the caller wipes it.
[[nodiscard]] std::string write_orders(const Bound& bound, const Launch& launch);

}  // namespace capgate::sandbox
