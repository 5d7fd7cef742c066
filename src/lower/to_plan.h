// Lowering to the Plan of our own engine. See lower/plan.h for what a Plan is.
#pragma once

#include "lower/artifact.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_plan(const Input& input);

}  // namespace capgate::lower
