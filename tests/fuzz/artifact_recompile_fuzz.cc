// Any text as an artifact that `diff` compares with a manifest. The comparison succeeds or says why
// it cannot be made. If the options of the provenance can be used, an artifact that is compiled
// with them has the same options, and equals the manifest that it was compiled from.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "cli/diff_artifact.h"
#include "core/manifest.h"
#include "core/merge.h"
#include "fuzz/mistakes.h"
#include "lower/choices.h"
#include "lower/read_options.h"
#include "lower/targets.h"
#include "review/artifact_diff.h"
#include "review/diff_print.h"
#include "text/json.h"

namespace {

using namespace capgate;
using text::Document;

// Every target can express it.
constexpr std::string_view manifest_text =
    R"({"name": "s", "version": "1", "tools": [{"name": "t", "capabilities": )"
    R"(["fs:read:/srv/a/**", "fs:write:/srv/a/out/**", "clock:system"]}]})";

const Document& manifest_document() {
  static const auto document = text::parse_json(std::string(manifest_text));
  CAPGATE_ASSERT(document.has_value());
  return *document;
}

struct Compiled {
  core::Manifest manifest;
  core::Policy policy;
};

const Compiled& compiled() {
  static const Compiled value = [] {
    auto manifest = core::parse_manifest(manifest_document(), {});
    CAPGATE_ASSERT(manifest.has_value());
    auto policy = core::merge(*manifest);
    CAPGATE_ASSERT(policy.has_value());
    return Compiled{.manifest = *std::move(manifest), .policy = *std::move(policy)};
  }();
  return value;
}

std::string print_options(const lower::Options& options) {
  const lower::Input input{compiled().manifest, compiled().policy, options};
  return print_json(lower::Artifact{.target = "bwrap"}, input, text::JsonWriter::Style::compact);
}

// Reads options, compiles the manifest with them, and reads what was compiled.
void check_options(const Document& artifact) {
  const auto value = artifact.root().find("provenance")->find("options");
  if (!value) return;
  auto options = lower::read_options(*value);
  if (!options) return fuzz::check_terminal_text(options.error());
  const auto printed = text::parse_json(print_options(*options));
  CAPGATE_ASSERT(printed.has_value());
  const auto again = lower::read_options(*printed->root().find("provenance")->find("options"));
  CAPGATE_ASSERT(again.has_value() && print_options(*again) == print_options(*options));

  const lower::Target* target = lower::find_target(review::provenance_of(artifact, "target"));
  if (target == nullptr || lower::settle_options(*target, *options, "")) return;
  const Source source("m.json", manifest_text);
  const lower::Input input{compiled().manifest, compiled().policy, *options, &source};
  const auto lowered = lower_to(*target, input);
  if (!lowered) return;
  const auto fresh = review::fresh_artifact(*lowered, input, source, lower::FilesAs::contents);
  const auto stored = text::parse_json(
      print_json(*lowered, input, text::JsonWriter::Style::pretty, lower::FilesAs::contents));
  CAPGATE_ASSERT(stored.has_value() && review::is_artifact(*stored));
  const review::ArtifactSide now{.document = *fresh.document, .fresh = &fresh};
  CAPGATE_ASSERT(review::compare_artifacts({.document = *stored}, now).empty());
  CAPGATE_ASSERT(review::compare_artifacts(now, {.document = *stored}).empty());
}

void check_comparison(const cli::ArtifactOperand& before, const cli::ArtifactOperand& after) {
  cli::Output output;
  const auto result = cli::compare_artifact(before, after, {}, output);
  CAPGATE_ASSERT(output.out.empty());
  fuzz::check_terminal_text(output.err);
  CAPGATE_ASSERT(result.has_value() == output.err.empty());
  if (!result) {
    CAPGATE_ASSERT(result.error() != 0);
    return;
  }
  const std::array servers{result->server};
  fuzz::check_terminal_text(review::diff_text(servers, Colour::off));
  const auto json = review::diff_json(servers, {.unbound = {}, .notes = result->notes});
  CAPGATE_ASSERT(text::parse_json(json).has_value());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const cli::ReadSource manifest{
      .name = "m.json", .file = "m.json", .text = text::share(std::string(manifest_text))};
  const cli::ReadSource stored{
      .name = "artifact",
      .file = "artifact",
      .text = text::share(std::string(reinterpret_cast<const char*>(data), size))};
  const auto artifact = cli::artifact_of(stored);
  if (artifact == nullptr) return 0;
  check_options(*artifact);
  check_comparison({.source = stored, .artifact = artifact.get()}, {.source = manifest});
  check_comparison({.source = manifest}, {.source = stored, .artifact = artifact.get()});
  return 0;
}
