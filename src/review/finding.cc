#include "review/finding.h"

#include <algorithm>
#include <tuple>

#include "base/digest.h"
#include "base/format.h"

namespace capgate::review {

std::string fingerprint(const Finding& finding) {
  return "sha256:" + sha256_hex(format("{}\n{}\n{}", finding.rule, finding.file, finding.identity));
}

void sort_findings(std::vector<Finding>& findings) {
  const auto key = [](const Finding& finding) {
    return std::tuple(-static_cast<int>(finding.level), std::string_view(finding.file),
                      finding.position.line, finding.position.column, finding.rule,
                      std::string_view(finding.identity));
  };
  std::ranges::sort(findings, {}, key);
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::note: return "note";
    case Level::warning: return "warning";
    case Level::error: return "error";
  }
  return "error";
}

}  // namespace capgate::review
