#include "cli/check_lints.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/format.h"
#include "base/text.h"
#include "cli/exit.h"
#include "cli/load_symbolic.h"
#include "review/lint.h"
#include "sys/file.h"
#include "text/json_or_yaml.h"

namespace capgate::cli {
namespace {

using review::Finding;
using review::Level;

constexpr std::string_view ignore_name = ".capgate-ignore.yaml";

// The day in UTC. SOURCE_DATE_EPOCH is how reproducible builds name the time that they mean.
std::string today() {
  auto now = std::chrono::system_clock::now();
  const char* given = std::getenv("SOURCE_DATE_EPOCH");
  const auto seconds = given == nullptr ? std::nullopt : parse_decimal(given);
  // Up to the year 9999, so that days compare as texts.
  if (seconds && *seconds < 253'402'300'800U) {
    now = std::chrono::system_clock::time_point(std::chrono::seconds(*seconds));
  }
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(now));
  return format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string working_directory() {
  std::error_code error;
  const auto path = std::filesystem::current_path(error);
  return error ? std::string() : path.string();
}

// How findings name a file: from the working directory where it lies below it, else from the root.
std::string file_of(const std::string& name, const std::string& directory) {
  if (name == "-") return {};
  std::string path = review::plain_path(name);
  if (path == ".." || path.starts_with("../")) path = review::plain_path(directory + "/" + path);
  const std::string below = directory == "/" ? directory : directory + "/";
  if (!directory.empty() && path.starts_with(below)) path.erase(0, below.size());
  return path;
}

struct Ignoring {
  std::string name;
  std::shared_ptr<const text::Document> document;
  review::IgnoreFile file;
};

std::expected<Ignoring, int> read_ignore_file(const Arguments& arguments, Output& output) {
  Ignoring out;
  if (arguments.has("--no-ignore")) return out;
  const auto named = arguments.value("--ignore");
  const std::string path(named.value_or(ignore_name));
  auto read = sys::read_file(path, text::largest_document);
  if (!read && !named && read.error().err == ENOENT) return out;
  if (!read) {
    output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(path),
                         sys::reason(read.error()));
    return std::unexpected(Exit::unreadable);
  }
  auto document = parse_document(path, text::share(*std::move(read)), arguments, output);
  if (!document) return std::unexpected(document.error());
  out.name = path;
  out.document = *std::move(document);
  auto file = review::parse_ignore_file(*out.document);
  if (!file) {
    const Source source(path, out.document->source());
    return std::unexpected(report(file.error(), source, arguments, output));
  }
  out.file = *std::move(file);
  return out;
}

CheckedFile check_file(const Arguments& arguments, const std::string& operand,
                       const std::string& directory, Output& output) {
  CheckedFile out{.name = operand == "-" ? "<stdin>" : operand,
                  .file = file_of(operand, directory),
                  .loaded = std::nullopt,
                  .said = {}};
  Arguments how = arguments;
  const bool for_programs = arguments.has("--json") || arguments.has("--sarif");
  if (for_programs) how.options.emplace_back("--json", "");
  Output said;
  auto loaded = load(how, {.manifest = operand}, said);
  // What nobody bound stands for itself: a manifest is reviewed before anyone runs it. What only a
  // bound one has (--tool, --validators) is not asked for then.
  if (!loaded && loaded.error() == Exit::compile_error && operand != "-" &&
      !arguments.has("--tool") && !arguments.has("--validators")) {
    core::Symbols symbols;
    Output unused;
    auto symbolic =
        load_symbolic(how, {.manifest = operand, .seal = arguments.has("--seal")}, symbols, unused);
    if (symbolic && !symbols.names().empty()) {
      out.loaded = *std::move(symbolic);
      out.symbols = std::move(symbols);
      return out;
    }
  }
  output.err += said.err;
  if (loaded) {
    out.loaded = *std::move(loaded);
  } else {
    out.code = loaded.error();
    out.said = std::move(said.out);
  }
  return out;
}

// With ${NAME} where a variable was not bound.
Finding shown(Finding finding, const core::Symbols& symbols) {
  if (symbols.names().empty()) return finding;
  for (std::string* text :
       {&finding.message, &finding.help, &finding.identity, &finding.capability}) {
    *text = symbols.show(*text);
  }
  return finding;
}

std::optional<std::uint64_t> number_at(text::Value value, std::string_view key) {
  const auto found = value.find(key);
  return found ? parse_decimal(found->text()) : std::nullopt;
}

std::string text_at(text::Value value, std::string_view key) {
  const auto found = value.find(key);
  return found ? std::string(found->text()) : std::string();
}

// Mistakes are findings too where a dashboard shows them: `load` said them as JSON.
void add_mistakes(const CheckedFile& file, std::vector<Finding>& out) {
  if (file.said.empty()) return;
  const auto document = text::parse_json_or_yaml("mistakes.json", text::share(file.said));
  const auto list = document ? document->root().find("diagnostics") : std::nullopt;
  if (!list) return;
  std::vector<std::string> known;
  for (const text::Value each : list->elements()) {
    const auto code = find_code(text_at(each, "code"));
    if (!code) continue;
    Finding finding{
        .rule = code_name(*code),
        .level = Level::error,
        .message = text_at(each, "message"),
        .help = text_at(each, "help"),
        .file = file.file,
        .position = {number_at(each, "line").value_or(1), number_at(each, "column").value_or(1)},
        .end = {number_at(each, "endLine").value_or(1), number_at(each, "endColumn").value_or(1)},
        .identity = {}};
    // The same mistake twice is told apart by its number, which does not name a line either.
    known.push_back(format("{}\n{}", finding.rule, finding.message));
    finding.identity = format("{}\n{}", finding.message, std::ranges::count(known, known.back()));
    out.push_back(std::move(finding));
  }
}

Level wanted_level(const Arguments& arguments) {
  const auto severity = arguments.value("--severity").value_or("warning");
  if (severity == "note") return Level::note;
  return severity == "error" ? Level::error : Level::warning;
}

void keep_severe(CheckReport& report, Level least) {
  report.hidden =
      std::erase_if(report.findings, [&](const Finding& finding) { return finding.level < least; });
  std::erase_if(report.suppressed,
                [&](const review::Suppressed& each) { return each.finding.level < least; });
}

}  // namespace

std::expected<CheckReport, int> check_files(const Arguments& arguments, Output& output) {
  auto ignoring = read_ignore_file(arguments, output);
  if (!ignoring) return std::unexpected(ignoring.error());
  const std::string directory = working_directory();
  CheckReport out;
  std::vector<Finding> findings;
  std::vector<std::string> checked;
  for (const std::string& operand : arguments.operands) {
    const std::string file = file_of(operand, directory);
    if (std::ranges::find(checked, file) != checked.end()) continue;
    checked.push_back(file);
    CheckedFile each = check_file(arguments, operand, directory, output);
    if (each.code == Exit::usage) return std::unexpected(each.code);
    if (each.loaded) {
      for (Finding& finding : review::lint({.manifest = each.loaded->manifest,
                                            .document = *each.loaded->document,
                                            .file = each.file})) {
        findings.push_back(shown(std::move(finding), each.symbols));
      }
    }
    out.files.push_back(std::move(each));
  }
  const Source source(ignoring->name, ignoring->document ? ignoring->document->source() : "");
  const std::string ignore_file = file_of(ignoring->name, directory);
  auto reviewed = review::apply_ignore_file(
      ignoring->file, std::move(findings),
      {.source = &source, .file = ignore_file, .today = today(), .checked = checked});
  out.findings = std::move(reviewed.findings);
  out.suppressed = std::move(reviewed.suppressed);
  out.ignore_file = std::move(ignoring->name);
  out.ignore_document = std::move(ignoring->document);
  keep_severe(out, wanted_level(arguments));
  if (arguments.has("--sarif")) {
    for (const CheckedFile& file : out.files) add_mistakes(file, out.findings);
    review::sort_findings(out.findings);
  }
  return out;
}

int exit_code(const CheckReport& report) {
  int out = report.findings.empty() ? Exit::ok : Exit::widened;
  const auto differs = [](const CheckedFile& file) { return file.lock_code == Exit::integrity; };
  if (std::ranges::any_of(report.files, differs)) out = Exit::integrity;
  for (const CheckedFile& file : report.files) {
    for (const int code : {file.code, file.lock_code.value_or(Exit::ok)}) {
      if (code == Exit::unreadable) return code;
      if (code != Exit::ok && code != Exit::integrity) out = code;
    }
  }
  return out;
}

}  // namespace capgate::cli
