#include "cli/run_engine.h"

#include <utility>

#include "base/format.h"
#include "base/kept.h"
#include "cli/project.h"
#include "lower/targets.h"
#include "sandbox/prelude.h"

namespace capgate::cli {

std::expected<std::optional<engines::Kind>, int> read_engine(const Arguments& arguments,
                                                             Output& output) {
  const std::string_view name = arguments.value("--engine").value_or("native");
  const auto kind = engines::kind_of(name);
  const bool has_image = arguments.has("--image");
  const bool is_container = kind && *kind != engines::Kind::bwrap;
  if (is_container && !has_image) {
    return std::unexpected(usage_error(format("--engine {} needs --image", name),
                                       "name an image that it has: --image REF", output));
  }
  if (!is_container && has_image) {
    return std::unexpected(usage_error(format("--image is not for --engine {}", name),
                                       "add --engine docker or podman, or leave it out", output));
  }
  if (!kind) return std::nullopt;
  for (const std::string_view option : {"--profile", "--trace"}) {
    if (!arguments.has(option)) continue;
    return std::unexpected(usage_error(format("--engine {} cannot {}", name, option),
                                       "leave --engine out: the native engine does that", output));
  }
  return kind;
}

std::expected<int, int> run_by_engine(const EngineOrder& order, sandbox::Session session,
                                      Output& output) {
  const Loaded& loaded = order.loaded;
  auto& options = kept(lower::Options(loaded.options));
  const auto& setting = kept(
      engines::find_setting({.kind = order.kind,
                             .image = std::string(order.arguments.value("--image").value_or("")),
                             .command = session.command,
                             .caller = {.path = session.path,
                                        .directory = config_places(order.arguments).directory,
                                        .home = session.home}},
                            loaded.policy, options));
  if (!setting) return sandbox::refuse_to_start(setting.error());
  const lower::Input input{loaded.manifest, loaded.policy, options, &order.source};
  auto& artifact = kept(lower_to(*lower::find_target(engines::name_of(order.kind)), input));
  if (!artifact) {
    return std::unexpected(report(artifact.error(), order.source, order.arguments, output));
  }
  engines::take_over(*setting, *artifact);
  return engines::run(
      {.session = std::move(session), .artifact = *artifact, .input = input, .setting = *setting});
}

}  // namespace capgate::cli
