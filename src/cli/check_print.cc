// How the findings of `capgate check` are said.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "cli/check_lints.h"
#include "review/lint_rules.h"
#include "review/sarif.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using review::Finding;
using text::JsonWriter;

// More than this is noise for a person; programs get all of them.
constexpr std::size_t most_shown = 100;

std::string count(std::size_t n, std::string_view one) {
  if (n == 1) return format("1 {}", one);
  if (one.ends_with('y')) return format("{} {}ies", n, one.substr(0, one.size() - 1));
  return format("{} {}s", n, one);
}

std::string render_finding(const Finding& finding, const Source& source, Colour colour) {
  return render(Remark{.severity = level_name(finding.level),
                       .code = finding.rule,
                       .where = finding.where,
                       .message = finding.message,
                       .help = finding.help},
                source, colour);
}

// Those of one file, in their order.
std::size_t show(const CheckReport& report, std::string_view file, const Source& source,
                 Output& output) {
  const Colour colour = stderr_colour();
  std::size_t shown = 0;
  for (const Finding& finding : report.findings) {
    if (finding.file != file) continue;
    if (++shown <= most_shown) output.err += render_finding(finding, source, colour);
  }
  if (shown > most_shown) {
    output.err += format("... and {} more; --json shows all of them\n", shown - most_shown);
  }
  return shown;
}

void show_file(const CheckReport& report, const CheckedFile& file, Output& output) {
  if (!file.loaded) return;  // its mistakes were said
  const core::Manifest& manifest = file.loaded->manifest;
  const std::size_t findings = show(report, file.file, file.loaded->source(), output);
  std::string verdict = findings == 0 ? "" : count(findings, "finding");
  if (file.lock_code.value_or(0) != 0) {
    verdict = format("not as in the lock{}{}", verdict.empty() ? "" : ", ", verdict);
  }
  output.out +=
      format("{}: {}: {}, {} declared, {} after merging\n", escape_for_terminal(file.loaded->name),
             verdict.empty() ? "ok" : verdict, count(manifest.tools.size(), "tool"),
             count(manifest.declared.size(), "capability"),
             count(core::policy_lines(file.loaded->policy).size(), "grant"));
  for (const std::string& note : manifest.notes) output.err += format("note: {}\n", note);
  for (const std::string& name : file.symbols.names_among(manifest.used_variables)) {
    output.err += format("note: ${{{0}}} is not bound: --set {0}=VALUE\n", name);
  }
}

void write_finding(JsonWriter& json, const Finding& finding) {
  json.key("rule").string(finding.rule).key("level").string(level_name(finding.level));
  json.key("message").string(finding.message).key("help").string(finding.help);
  json.key("file").string(finding.file);
  json.key("line").number(finding.position.line).key("column").number(finding.position.column);
  json.key("endLine").number(finding.end.line).key("endColumn").number(finding.end.column);
  if (!finding.tool.empty()) json.key("tool").string(finding.tool);
  if (!finding.capability.empty()) json.key("capability").string(finding.capability);
  json.key("fingerprint").string(fingerprint(finding));
}

void write_findings(JsonWriter& json, const CheckReport& report) {
  json.key("findings").begin_array();
  for (const Finding& finding : report.findings) {
    write_finding(json.begin_object(), finding);
    json.end_object();
  }
  json.end_array().key("ignored").begin_array();
  for (const review::Suppressed& each : report.suppressed) {
    write_finding(json.begin_object(), each.finding);
    json.key("reason").string(each.reason).end_object();
  }
  json.end_array();
}

void write_file(JsonWriter& json, const CheckedFile& file) {
  const Loaded& loaded = *file.loaded;
  json.key("diagnostics").begin_array().end_array();
  json.key("file").string(file.file);
  json.key("name").string(loaded.manifest.name).key("version").string(loaded.manifest.version);
  json.key("tools").number(loaded.manifest.tools.size());
  json.key("declared").number(loaded.manifest.declared.size());
  json.key("grants").number(core::policy_lines(loaded.policy).size());
  json.key("manifestHash").string(loaded.manifest.hash);
  // What it is depends on the values.
  json.key("policyHash");
  const auto unbound = file.symbols.names_among(loaded.manifest.used_variables);
  unbound.empty() ? json.string(loaded.policy.hash) : json.null();
  json.key("unbound").begin_array();
  for (const std::string& name : unbound) json.string(name);
  json.end_array();
  if (file.lock_code) json.key("locked").boolean(*file.lock_code == 0);
}

void print_one(const CheckReport& report, Output& output) {
  const CheckedFile& file = report.files.front();
  if (!file.loaded) {
    output.out += file.said;
    return;
  }
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1);
  write_file(json, file);
  write_findings(json, report);
  json.end_object();
  output.out += std::move(json).take() + "\n";
}

}  // namespace

void print_text(const CheckReport& report, Output& output) {
  for (const CheckedFile& file : report.files) show_file(report, file, output);
  if (report.ignore_document) {
    const Source source(report.ignore_file, report.ignore_document->source());
    // Its findings are the ones that no manifest has.
    CheckReport own;
    std::ranges::copy_if(report.findings, std::back_inserter(own.findings),
                         [](const Finding& each) {
                           return each.rule == review::rule::ignore_expired ||
                                  each.rule == review::rule::ignore_unused;
                         });
    if (!own.findings.empty()) (void)show(own, own.findings.front().file, source, output);
  }
  if (!report.suppressed.empty()) {
    output.err += format("note: {} ignored by {}\n", count(report.suppressed.size(), "finding"),
                         escape_for_terminal(report.ignore_file));
  }
  if (report.hidden > 0) {
    output.err += format("note: {} of less severity; --severity note shows them\n",
                         count(report.hidden, "finding"));
  }
}

void print_json(const CheckReport& report, Output& output) {
  if (report.files.size() == 1) {
    print_one(report, output);
    return;
  }
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("files").begin_array();
  for (const CheckedFile& file : report.files) {
    if (!file.loaded && !file.said.empty()) {
      json.verbatim(trim(file.said));
      continue;
    }
    json.begin_object();
    if (file.loaded) {
      write_file(json, file);
    } else {
      json.key("file").string(file.file).key("unreadable").boolean(true);
    }
    json.end_object();
  }
  json.end_array();
  write_findings(json, report);
  json.end_object();
  output.out += std::move(json).take() + "\n";
}

void print_sarif(const CheckReport& report, Output& output) {
  output.out += review::print_sarif({.rules = review::lint_rules(),
                                     .findings = report.findings,
                                     .suppressed = report.suppressed});
}

}  // namespace capgate::cli
