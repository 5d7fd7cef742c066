// Any bytes at all: an ignore file becomes entries that are complete, or gives mistakes that stand
// in the text and can be printed. What it ignores and what it leaves are the findings, each once.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/text.h"
#include "fuzz/mistakes.h"
#include "review/ignore.h"
#include "review/lint_rules.h"
#include "text/yaml.h"

namespace {

using namespace capgate;

std::vector<review::Finding> one_of_each_rule() {
  std::vector<review::Finding> out;
  for (const review::Rule& rule : review::lint_rules()) {
    out.push_back({.rule = rule.id,
                   .level = rule.level,
                   .message = "m",
                   .help = "h",
                   .file = "m.json",
                   .position = {},
                   .end = {},
                   .identity = "i",
                   .tool = "t",
                   .capability = "net:connect:*"});
  }
  return out;
}

void check_entries(const review::IgnoreFile& file, std::string_view source) {
  for (const review::IgnoreEntry& entry : file.entries) {
    CAPGATE_ASSERT(review::find_rule(entry.rule) != nullptr);
    CAPGATE_ASSERT(!entry.reason.empty());
    CAPGATE_ASSERT(entry.expires == "never" || review::is_date(entry.expires));
    CAPGATE_ASSERT(fuzz::is_inside(entry.where, Span::at(0, source.size())));
  }
  const Source named("fuzz", source);
  const auto findings = one_of_each_rule();
  const auto reviewed = review::apply_ignore_file(
      file, findings, {.source = &named, .file = "fuzz", .today = "2026-11-16"});
  CAPGATE_ASSERT(reviewed.findings.size() + reviewed.suppressed.size() >= findings.size());
  for (const review::Finding& finding : reviewed.findings) {
    CAPGATE_ASSERT(escape_for_terminal(finding.message) == finding.message);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const text::SharedText text = text::share(std::string(reinterpret_cast<const char*>(data), size));
  const auto document = text::parse_yaml(text);
  if (!document) return 0;
  const auto file = review::parse_ignore_file(*document);
  if (file) {
    check_entries(*file, *text);
  } else {
    fuzz::check_mistakes(file.error(), *text);
  }
  return 0;
}
