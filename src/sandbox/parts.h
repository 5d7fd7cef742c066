// What the steps of binding a Plan work on together.
#pragma once

#include "lower/plan.h"
#include "sandbox/bind.h"
#include "sandbox/grants.h"
#include "sandbox/holes.h"
#include "sandbox/tree.h"

namespace capgate::sandbox {

struct Parts {
  const lower::Plan& plan;
  const Launcher& launcher;
  const Holes& holes;
  Grants& grants;
  Tree& tree;
  Bound& bound;
};

}  // namespace capgate::sandbox
