// What one artifact of `compile` has that another one has not. Pure.
//
//   const auto fresh = fresh_artifact(artifact, input, source, files);   lowered just now
//   compare_artifacts({.document = stored}, {.document = *fresh.document, .fresh = &fresh})
//
// Never claims more than is known: of a part whose words do not say whether they give or take, it
// says that it differs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/render.h"
#include "lower/artifact.h"
#include "review/artifact_parts.h"
#include "review/diff_shown.h"

namespace capgate::review {

// An artifact with the causes of its parts.
struct FreshArtifact {
  std::unique_ptr<const text::Document> document;  // as `compile` prints it
  Groups groups;
  std::vector<Part> parts;
};

[[nodiscard]] FreshArtifact fresh_artifact(const lower::Artifact& artifact,
                                           const lower::Input& input, const Source& source,
                                           lower::FilesAs files);

struct ArtifactSide {
  const text::Document& document;
  const FreshArtifact* fresh = nullptr;  // null: it was read from a file
};

// Empty where both are the same in every byte that means something. `told` are facts besides:
// another hash, another compiler.
[[nodiscard]] std::vector<ShownPart> compare_artifacts(const ArtifactSide& before,
                                                       const ArtifactSide& after);

}  // namespace capgate::review
