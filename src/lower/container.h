// A policy as a container of an image: what docker, podman and compose then say each in their own
// words.
//
//   Container container = container_of(input, support);
//   container.mounts[0].source           "/srv/data"
//
// The image brings the programs. The container has no network; declared egress travels over a
// socket of `capgate egress` (lower/forwarder.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lower/common.h"

namespace capgate::lower {

struct ContainerMount {
  enum class Access : unsigned char { read_only, read_write };
  std::string source;
  std::string target;
  Access access = Access::read_only;
  const core::Origins* origins = nullptr;  // of the policy
};

// "NAME=value", or "NAME" where the engine takes the value from its caller's environment.
struct ContainerVariable {
  std::string setting;
  Cause cause;
};

struct ContainerLimit {
  std::uint64_t value = 0;
  Cause cause;
};

struct Container {
  SeccompNeeds needs;  // of the server with the init and the forwarder before it
  bool forwards = false;
  std::vector<ContainerMount> mounts;  // without the forwarder's, which no capability names
  std::vector<ContainerVariable> variables;
  ContainerLimit cpu;  // in hundredths of a processor; 0: none
  ContainerLimit disk;
  ContainerLimit files;
  ContainerLimit memory;
  ContainerLimit pids;
};

// Whether the engine's command hands its caller's proxies to every container unless they are
// overwritten, and how.
enum class CallersProxies : unsigned char { must_be_overwritten, stay_outside };

// Also refuses, by `support`, what no engine of containers can keep.
[[nodiscard]] Container container_of(const Input& input, CallersProxies proxies, Support& support);

// What stands between capgate-init and the command; none without declared egress.
[[nodiscard]] std::vector<std::string_view> command_prefix(const Container& container);

// "1.50"
[[nodiscard]] std::string processors(const ContainerLimit& cpu);

}  // namespace capgate::lower
