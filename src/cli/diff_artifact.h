// `capgate diff` with what `compile` printed: the manifest is compiled again, for the same target
// and with the options of the provenance, and the two artifacts are compared part by part.
//
//   capgate diff bwrap.json github.json     does the manifest ask for more than what is in use?
//   capgate diff github.json bwrap.json     does what is in use grant more than the manifest?
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/diff_sources.h"
#include "review/diff_shown.h"

namespace capgate::cli {

// Names what an artifact was made with and what its manifest cannot say.
inline constexpr std::string_view expect_option = "--expect";

// The document, where the text is an artifact; what is wrong with another text is said by others.
[[nodiscard]] std::unique_ptr<const text::Document> artifact_of(const ReadSource& source);

// One side of a comparison with an artifact.
struct ArtifactOperand {
  const ReadSource& source;
  const text::Document* artifact = nullptr;  // null: a manifest
};

struct ArtifactResult {
  review::ShownServer server;
  std::vector<std::string> notes;  // what the artifact says and the manifest cannot
};

// At least one of the two is an artifact. On failure everything is said in `output`.
[[nodiscard]] std::expected<ArtifactResult, int> compare_artifact(const ArtifactOperand& before,
                                                                  const ArtifactOperand& after,
                                                                  const Arguments& arguments,
                                                                  Output& output);

}  // namespace capgate::cli
