// The ignore file of `capgate check`: findings that somebody has looked at, why, and until when.
//
//   ignore:
//     - rule: NET_ANY
//       capability: net:connect:*      # optional, as are tool and file
//       reason: it fetches what the user asks for; it holds no files and no secrets
//       expires: 2027-06-30            # the last day that it holds (UTC), or never
//
// Pure: the caller says which day it is.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "review/finding.h"
#include "review/sarif.h"
#include "text/document.h"

namespace capgate::review {

struct IgnoreEntry {
  std::string_view rule;   // an ID of lint_rules()
  std::string capability;  // canonical if it is one; empty: any
  std::string tool;        // empty: any
  std::string file;        // empty: any
  std::string reason;
  std::string expires;  // "2027-06-30" or "never"
  Span where;           // of the whole entry's rule, for findings about it
};

struct IgnoreFile {
  std::vector<IgnoreEntry> entries;
};

[[nodiscard]] Checked<IgnoreFile> parse_ignore_file(const text::Document& document);

// "2027-02-29" is none.
[[nodiscard]] bool is_date(std::string_view text);

struct Reviewed {
  std::vector<Finding> findings;       // those that count, and what is to say of the ignore file
  std::vector<Suppressed> suppressed;  // those that are ignored
};

// Where and when the entries are applied.
struct IgnoreContext {
  const Source* source = nullptr;          // of the ignore file
  std::string_view file;                   // its name, for findings about it
  std::string_view today;                  // "2026-11-16"
  std::span<const std::string> checked{};  // files that were looked at
};

// An entry that has expired ignores nothing, and what it matches is told; one that matches nothing
// is told too, unless it is about a file that was not looked at.
[[nodiscard]] Reviewed apply_ignore_file(const IgnoreFile& file, std::vector<Finding> findings,
                                         const IgnoreContext& context);

// A path as ignore files and fingerprints have it: "./a//b.json" is "a/b.json".
[[nodiscard]] std::string plain_path(std::string_view path);

}  // namespace capgate::review
