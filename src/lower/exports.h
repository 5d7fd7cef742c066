// Formats of other tools that a policy is written in by `capgate export`, by name.
//
//   const Exporter* exporter = find_exporter("srt");
//   const Artifact artifact = TRY(export_to(*exporter, input, document.root()));
//   artifact.files.front().contents   the other tool's file
//
// A table of its own: the targets of `compile` are engines and parts of them, which keep a policy
// or refuse it; these formats are read by programs that are not ours, and most of them can say
// less. What a format cannot say of a grant is refused, unless the caller accepts it by name; the
// kinds of which it says nothing at all stand in `notCovered`, whatever the policy holds.
#pragma once

#include <span>
#include <string_view>

#include "lower/artifact.h"
#include "lower/coverage.h"
#include "text/document.h"

namespace capgate::lower {

struct Exporter {
  // Whether the file has a place for the command that starts the server.
  enum class Holds : unsigned char { policy, command };

  std::string_view name;
  std::string_view summary;
  Checked<Artifact> (*write)(const Input& input, text::Value manifest);
  const Coverage* coverage;
  std::span<const std::string_view> open = {};  // what is open for everyone, besides whole kinds
  Holds holds = Holds::policy;
};

inline constexpr std::string_view exporter_names[] = {"mcpb-meta", "srt", "toolhive", "vscode"};

[[nodiscard]] std::span<const Exporter> exporters();
[[nodiscard]] const Exporter* find_exporter(std::string_view name);

// `manifest` is the document that the input was read from. The artifact has exactly one file.
[[nodiscard]] Checked<Artifact> export_to(const Exporter& exporter, const Input& input,
                                          text::Value manifest);

}  // namespace capgate::lower
