// `run --engine bwrap|docker|podman`: the options, and the way from a policy to the engine.
#pragma once

#include <expected>
#include <optional>

#include "base/render.h"
#include "cli/load.h"
#include "cli/options.h"
#include "engines/engine.h"
#include "sandbox/session.h"

namespace capgate::cli {

inline constexpr Option engine_option{
    .name = "--engine",
    .value = "NAME",
    .help = "native (default), bwrap, docker or podman: who makes the sandbox",
    .choices = engines::engine_names};
inline constexpr Option image_option{
    .name = "--image", .value = "REF", .help = "docker, podman: the image, which is never fetched"};

// The engine, or none for the native one. On failure everything is said in `output`.
[[nodiscard]] std::expected<std::optional<engines::Kind>, int> read_engine(
    const Arguments& arguments, Output& output);

struct EngineOrder {
  engines::Kind kind = engines::Kind::bwrap;
  const Arguments& arguments;
  const Loaded& loaded;
  const Source& source;
};
// The exit code, or the mistakes in `output`, and nothing was started.
[[nodiscard]] std::expected<int, int> run_by_engine(const EngineOrder& order,
                                                    sandbox::Session session, Output& output);

}  // namespace capgate::cli
