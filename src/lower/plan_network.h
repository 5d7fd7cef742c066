// The network of the Plan: how connections are captured, and the rules that decide on them.
#pragma once

#include "lower/artifact.h"
#include "lower/common.h"

namespace capgate::lower {

// Inside, in redirect mode: the port of the one socket that takes every connection, or the next
// one that nothing else uses.
inline constexpr std::uint16_t first_redirect_port = 61000;

[[nodiscard]] PlanNetwork plan_network(const Input& input, Support& support);

}  // namespace capgate::lower
