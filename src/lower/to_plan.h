// Lowering to the Plan of our own engine. See lower/plan.h for what a Plan is.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_plan(const Input& input);

inline constexpr Coverage plan_coverage{
    .fs = enforced("exact mounts and Landlock"),
    .connect = enforced("network namespace and broker"),
    .listen = enforced("published on the host's loopback"),
    .exec = enforced("visible programs, Landlock, system call filter"),
    .env = enforced("cleared; declared names only"),
    .sealed = enforced("placeholder inside, swapped by the broker"),
    .ipc = enforced("bind of that socket; system call filter"),
    .clock = enforced("mounts"),
    .limit = enforced("cgroup, rlimits, tmpfs size, watchdog"),
    .assertion = enforced("named validators, else carried as metadata"),
};

}  // namespace capgate::lower
