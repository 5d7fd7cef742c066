// What stands behind the handles of the public interface, and the steps that both interfaces share.
// This is the only header of the library that knows the internal types: in its namespace,
// `Diagnostic` is the public one and `capgate::Diagnostic` the compiler's own.
#pragma once

#define CAPGATE_BUILDING 1

#include <capgate/capgate.h>

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/render.h"
#include "base/result.h"
#include "core/manifest.h"
#include "core/policy.h"
#include "lower/artifact.h"
#include "text/document.h"

namespace capgate::v0 {

struct NamedDocument {
  std::string name;
  std::shared_ptr<const text::Document> document;

  [[nodiscard]] Source source() const { return {name, document->source()}; }
};

struct ManifestState {
  NamedDocument text;
  core::Manifest outline;
  std::vector<std::string> tools;
  std::vector<std::string> variables;
};

struct PolicyState {
  NamedDocument text;
  core::Manifest manifest;
  core::Policy policy;
  lower::Options options;
  std::vector<std::string> capabilities;
};

struct Access {
  static Manifest make(std::shared_ptr<const ManifestState> state) {
    return Manifest(std::move(state));
  }
  static Policy make(std::shared_ptr<const PolicyState> state) { return Policy(std::move(state)); }
  static const ManifestState& state(const Manifest& manifest) { return *manifest.state_; }
  static const PolicyState& state(const Policy& policy) { return *policy.state_; }
};

[[nodiscard]] Errors errors_of(const Diagnostics& mistakes, const Source& source);
// One mistake in what the caller gave beside the text.
[[nodiscard]] Errors option_error(std::string message, std::string help);

// The steps. Other than those of the public interface they may throw, when there is no memory.
[[nodiscard]] Expected<NamedDocument> read_document(std::string_view text, std::string_view name);
[[nodiscard]] Expected<Manifest> outline(NamedDocument text);
[[nodiscard]] Expected<Policy> compile_document(NamedDocument text, const CompileOptions& options);
[[nodiscard]] Expected<Artifact> lower_policy(const Policy& policy, std::string_view target,
                                              const LowerOptions& options);

// Errors that need no more memory than there is.
[[nodiscard]] Errors out_of_memory() noexcept;

// Does the work; what it throws becomes a failure.
template <typename Work>
[[nodiscard]] auto without_exceptions(Work work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return out_of_memory();
  }
}

}  // namespace capgate::v0
