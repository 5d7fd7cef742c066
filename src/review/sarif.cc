#include "review/sarif.h"

#include <algorithm>

#include "base/text.h"
#include "core/version.h"
#include "text/json_write.h"

namespace capgate::review {
namespace {

using text::JsonWriter;

constexpr std::string_view schema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

// A message may hold [text](target) as a link, and {0} as a place to fill in. What foreign names
// put into it must be neither: SARIF 2.1.0, 3.11.5 and 3.11.6.
std::string as_message(std::string_view text) {
  const bool has_link = text.contains("](");
  std::string out;
  for (const char c : text) {
    if (has_link && (c == '[' || c == ']' || c == '\\')) out += '\\';
    if (c == '{' || c == '}') out += c;
    out += c;
  }
  return out;
}

void write_rule(JsonWriter& json, const Rule& rule) {
  json.begin_object().key("id").string(rule.id);
  json.key("shortDescription").begin_object().key("text").string(rule.summary).end_object();
  json.key("fullDescription").begin_object().key("text").string(rule.detail).end_object();
  json.key("defaultConfiguration").begin_object().key("level").string(level_name(rule.level));
  json.end_object().end_object();
}

void write_place(JsonWriter& json, const Finding& finding) {
  json.begin_object().key("physicalLocation").begin_object();
  json.key("artifactLocation").begin_object().key("uri").string(uri_of(finding.file)).end_object();
  json.key("region").begin_object().key("startLine").number(finding.position.line);
  json.key("startColumn").number(finding.position.column);
  const auto place = [](const Source::Position& each) { return std::pair(each.line, each.column); };
  if (place(finding.end) > place(finding.position)) {
    json.key("endLine").number(finding.end.line).key("endColumn").number(finding.end.column);
  }
  json.end_object().end_object().end_object();
}

void write_result(JsonWriter& json, const SarifLog& log, const Finding& finding,
                  const std::string* reason) {
  json.begin_object().key("ruleId").string(finding.rule);
  const auto rule = std::ranges::find(log.rules, finding.rule, &Rule::id);
  if (rule != log.rules.end()) {
    json.key("ruleIndex").number(static_cast<std::uint64_t>(rule - log.rules.begin()));
  }
  json.key("level").string(level_name(finding.level));
  const std::string words =
      finding.help.empty() ? finding.message : finding.message + "\n" + finding.help;
  json.key("message").begin_object().key("text").string(as_message(words)).end_object();
  if (!finding.file.empty()) {
    write_place(json.key("locations").begin_array(), finding);
    json.end_array();
  }
  json.key("partialFingerprints").begin_object();
  json.key("capgate/v1").string(fingerprint(finding)).end_object();
  if (reason != nullptr) {
    json.key("suppressions").begin_array().begin_object().key("kind").string("external");
    json.key("justification").string(*reason).end_object().end_array();
  }
  json.end_object();
}

}  // namespace

std::string uri_of(std::string_view path) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out(path.starts_with('/') ? "file://" : "");
  for (const char c : path) {
    if (is_alnum(c) || std::string_view("-._~/").contains(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

std::string print_sarif(const SarifLog& log) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("$schema").string(schema).key("version").string("2.1.0");
  json.key("runs").begin_array().begin_object();
  json.key("tool").begin_object().key("driver").begin_object().key("name").string("capgate");
  json.key("version").string(core::version).key("rules").begin_array();
  for (const Rule& rule : log.rules) write_rule(json, rule);
  json.end_array().end_object().end_object();
  json.key("columnKind").string("unicodeCodePoints");
  json.key("results").begin_array();
  for (const Finding& finding : log.findings) write_result(json, log, finding, nullptr);
  for (const Suppressed& each : log.suppressed) {
    write_result(json, log, each.finding, &each.reason);
  }
  json.end_array().end_object().end_array().end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::review
