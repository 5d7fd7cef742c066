// One remark of a review, whoever makes it: a lint of `check`, a widening that `diff` found.
//
//   Finding{.rule = "NET_MULTI_TENANT", .level = Level::warning, .message = "...", .help = "...",
//           .file = "github.json", .position = {12, 7}, .identity = "search:net:connect:*.x.com"}
//
// The identity does not name a line: a finding keeps its fingerprint when lines move.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/render.h"

namespace capgate::review {

enum class Level : unsigned char { note, warning, error };

// What a kind of finding means, once for all of them.
struct Rule {
  std::string_view id;  // stable: ignore files and dashboards name it
  Level level = Level::warning;
  std::string_view summary;  // one line
  std::string_view detail;   // why it matters and what to do
};

struct Finding {
  std::string_view rule;
  Level level = Level::warning;
  std::string message;
  std::string help;
  std::string file;  // as the caller named it, or empty
  Source::Position position;
  Source::Position end;
  std::string identity;  // what stays the same when the file is reformatted
  // What an ignore file may name: the tool and the capability that it is about, if any.
  std::string tool = {};
  std::string capability = {};
  Span where = Span::nowhere();  // for the source line below a finding
};

// "sha256:..." of rule, file and identity.
[[nodiscard]] std::string fingerprint(const Finding& finding);

// Worst first, then by file and place.
void sort_findings(std::vector<Finding>& findings);

[[nodiscard]] std::string_view level_name(Level level);

}  // namespace capgate::review
