// Findings as SARIF 2.1.0, for code scanning. Byte-stable: no time, no machine.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "review/finding.h"

namespace capgate::review {

// `rules` are those of the tool that ran, whether or not they found something. A finding that was
// ignored stands in the log as suppressed, with the reason that the ignore file gives.
struct Suppressed {
  Finding finding;
  std::string reason;
};

struct SarifLog {
  std::span<const Rule> rules;
  std::vector<Finding> findings;
  std::vector<Suppressed> suppressed;
};

[[nodiscard]] std::string print_sarif(const SarifLog& log);

// A path as RFC 3986 wants it: "a b.json" is "a%20b.json", "/srv/a.json" is "file:///srv/a.json".
[[nodiscard]] std::string uri_of(std::string_view path);

}  // namespace capgate::review
