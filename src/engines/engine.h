// The other engines of `capgate run`. What `compile` prints for bwrap, docker or podman is what
// runs; the lifecycle, the environment, the limits and the report are those of the native engine.
//
//   Setting setting = TRY(find_setting({Kind::bwrap}, wanted, options));   what only the host knows
//   const auto artifact = lower_to(target, input);          the caller lowers, and prints mistakes
//   return engines::run({.session = ..., .artifact = *artifact, .setting = setting});
#pragma once

#include <array>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "lower/artifact.h"
#include "sandbox/host_path.h"
#include "sandbox/program.h"
#include "sandbox/session.h"

namespace capgate::engines {

enum class Kind : unsigned char { bwrap, docker, podman };

// --engine; the first one is not made here.
inline constexpr std::array<std::string_view, 4> engine_names{"native", "bwrap", "docker",
                                                              "podman"};
// Nothing for the native one.
[[nodiscard]] std::optional<Kind> kind_of(std::string_view name);
[[nodiscard]] std::string_view name_of(Kind kind);

// Those that can be started here, with what each says of its version.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> installed();

// What is to run, and for whom.
struct Wanted {
  Kind kind = Kind::bwrap;
  std::string image;  // of a container
  std::vector<std::string> command;
  sandbox::Caller caller;
};

// What the artifact needs to know of this host, and the engine besides.
struct Setting {
  Kind kind = Kind::bwrap;
  std::string program;                   // the engine's own
  std::string image;                     // as it was named
  std::vector<std::string> command;      // as it is started inside
  std::vector<std::string> executables;  // of bwrap: what the command runs
  std::string directory;                 // of bwrap: where it starts
  std::string place;                     // a directory of this run, made with declared egress
  std::vector<std::string> kept_limits;  // which the engine does not hold, and capgate does
};

// Fills in what `options` must say of this host, so that what is lowered with them can run here.
[[nodiscard]] std::expected<Setting, sandbox::Refusal> find_setting(const Wanted& wanted,
                                                                    const core::Policy& policy,
                                                                    lower::Options& options);

// What capgate itself does for this run: limits that the engine leaves to it are enforced, and the
// broker of the declared network is started here.
void take_over(const Setting& setting, lower::Artifact& artifact);

struct EngineRun {
  sandbox::Session session;         // whose artifact is the Plan
  const lower::Artifact& artifact;  // of the engine
  const lower::Input& input;        // of that artifact
  const Setting& setting;
};

// Runs it, and says on stderr what a person should know. The server's exit status, or 125, 126,
// 127.
[[nodiscard]] int run(EngineRun run);

}  // namespace capgate::engines
