// The part of capgate that stays outside while the server runs: it copies stderr, relays stdin and
// stdout where it must, passes signals on, watches limits, and tells how it ended. It reads no byte
// that the server writes to stdout and parses nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sandbox/broker.h"
#include "sandbox/keeper.h"
#include "sandbox/launch.h"
#include "sandbox/limits.h"
#include "sandbox/relay.h"
#include "sandbox/trace.h"

namespace capgate::sandbox {

struct Watch {
  std::optional<int> grace;  // seconds after end of input before TERM, then KILL
  Keeper& keeper;
  Stdio& stdio;
  Broker* broker = nullptr;          // with net capabilities
  const Capture* capture = nullptr;  // then: what its sockets are
};

struct Outcome {
  int exit_code = 125;
  std::optional<orders::Report> failure;  // a step that did not succeed: the server never ran
  std::optional<Refusal> refusal;         // the broker did not start: the server never ran
  std::string explanation;                // why capgate ended it, if it did
  bool tcp_is_bounded = false;            // init could bound the buffers of TCP sockets
  bool was_told_to_end = false;           // by a signal that was passed on, or by --grace
  std::vector<Kept> set_aside;            // what the keeper renamed
};

// The signals that it passes on. Call before launch(), so that none is lost.
[[nodiscard]] sys::Fd take_signals();

[[nodiscard]] Outcome supervise(Sandbox& sandbox, const sys::Fd& signals, const Watch& watch,
                                const Limits& limits, Tracer* tracer);

}  // namespace capgate::sandbox
