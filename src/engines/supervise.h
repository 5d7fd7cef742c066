// Stays beside a server of another engine until it ends: copies its stderr, passes signals on,
// holds the time and, where no cgroup does, the memory.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>

#include "engines/server.h"
#include "sandbox/broker.h"
#include "sandbox/limits.h"
#include "sandbox/supervise.h"

namespace capgate::engines {

struct Watch {
  const sys::Fd& signals;
  const sandbox::Limits& limits;
  std::optional<int> grace;
  sandbox::Broker* broker = nullptr;  // with declared egress: the server starts when it is ready
};

// `start` is called once, when the server may run.
[[nodiscard]] sandbox::Outcome supervise(
    const Watch& watch,
    const std::function<std::expected<std::unique_ptr<Server>, sandbox::Refusal>()>& start);

}  // namespace capgate::engines
