// The lints of `capgate check`: what is right as a manifest and yet deserves a second look.
//
//   for (const Finding& finding : lint({.manifest = m, .document = d, .file = "github.json"})) ...
//
// Pure. The annotations of tools are read from the document, everything else from the manifest as
// it was checked. A finding about a capability is reported once, at the first line that declares
// it: the tools of a server share one sandbox. The rules are in lint_rules.h, what they know of the
// world in lint_tables.h.
#pragma once

#include <string_view>
#include <vector>

#include "core/manifest.h"
#include "review/finding.h"
#include "review/lint_rules.h"
#include "text/document.h"

namespace capgate::review {

struct LintInput {
  const core::Manifest& manifest;
  const text::Document& document;  // of which the manifest was made
  std::string_view file;           // for the findings
};

[[nodiscard]] std::vector<Finding> lint(const LintInput& input);

}  // namespace capgate::review
