// The options of `run` that concern the network.
#pragma once

#include <expected>

#include "cli/options.h"
#include "core/policy.h"
#include "egress/policy.h"

namespace capgate::cli {

inline constexpr Option audit_option{
    .name = "--audit",
    .value = "FILE",
    .help = "write what was reached and refused there, not to a new file in the state directory"};
inline constexpr Option proxy_env_option{
    .name = "--proxy-env",
    .help = "set HTTP_PROXY and HTTPS_PROXY for programs that want a proxy (none needs it)"};
inline constexpr Option net_limit_option{
    .name = "--net-limit",
    .value = "NAME=VALUE",
    .help = "connections, rate, bytes, idle, hello or dial (in seconds) of the network",
    .repeatable = true};

struct NetOptions {
  bool proxy_env = false;
  egress::EgressLimits limits;
};

[[nodiscard]] std::expected<egress::EgressLimits, int> read_net_limits(const Arguments& arguments,
                                                                       Output& output);

// On failure everything is said in `output`, and the exit code is the error.
[[nodiscard]] std::expected<NetOptions, int> read_net_options(const Arguments& arguments,
                                                              const core::Policy& policy,
                                                              Output& output);

}  // namespace capgate::cli
