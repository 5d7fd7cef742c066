// What `capgate check` finds in its files, and how it is said: to people, as JSON, as SARIF.
//
//   auto report = check_files(arguments, output);
//   if (!report) return report.error();
//   print_text(*report, output);
//   return exit_code(*report);
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/load.h"
#include "core/symbolic.h"
#include "review/finding.h"
#include "review/ignore.h"

namespace capgate::cli {

// One operand.
struct CheckedFile {
  std::string name;  // as it was given
  std::string file;  // as findings name it: relative to the working directory, if it lies there
  std::optional<Loaded> loaded;
  core::Symbols symbols = {};         // of variables that are not bound
  int code = 0;                       // why there is nothing loaded
  std::string said;                   // its mistakes as JSON, where programs read them
  std::optional<int> lock_code = {};  // of check_lock, with --locked
};

struct CheckReport {
  std::vector<CheckedFile> files;
  std::vector<review::Finding> findings;       // of the severity that counts, or worse
  std::vector<review::Suppressed> suppressed;  // of the same
  std::size_t hidden = 0;                      // findings of less severity
  std::string ignore_file;                     // its name, or empty
  std::shared_ptr<const text::Document> ignore_document;
};

// On failure (the ignore file, the words) everything is said in `output`. Files that cannot be read
// or are wrong are part of the report; for people, their mistakes are said at once.
[[nodiscard]] std::expected<CheckReport, int> check_files(const Arguments& arguments,
                                                          Output& output);

void print_text(const CheckReport& report, Output& output);
void print_json(const CheckReport& report, Output& output);
void print_sarif(const CheckReport& report, Output& output);

[[nodiscard]] int exit_code(const CheckReport& report);

}  // namespace capgate::cli
