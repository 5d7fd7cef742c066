// The flags of `docker run` and `podman run`, which are the same but for a few: those are in
// docker.cc and podman.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lower/container.h"

namespace capgate::lower {

// One word of argv, or two.
struct ContainerFlag {
  std::string_view flag;
  std::string value;
};

struct ContainerEngine {
  std::string_view name;
  std::string (*bind_mount)(const ContainerMount& mount) = nullptr;
  std::string_view tmpfs_options;  // besides those of both, with a comma before each
  // What only this engine needs to be as closed as the other, before the limits.
  std::span<const ContainerFlag> own_flags = {};
};

// The artifact points into `input`, not into the others.
[[nodiscard]] Artifact container_flags(const ContainerEngine& engine, const Container& container,
                                       const Input& input);

}  // namespace capgate::lower
