// The steps of a launch in words, for errors.
#pragma once

#include <string_view>

#include "sandbox/bind.h"
#include "sandbox/orders.h"

namespace capgate::sandbox {

[[nodiscard]] std::string_view step_name(orders::Step step);  // "pivot", "landlock" ...

// Which step failed, on what, why, and what to do.
[[nodiscard]] Refusal explain_failure(const orders::Report& report, const Bound& bound);

// CAPGATE_FAIL_STEP=NAME makes that step fail, for tests of what happens then: always a refusal.
[[nodiscard]] orders::Step injected_fault();

}  // namespace capgate::sandbox
