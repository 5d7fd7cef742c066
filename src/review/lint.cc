#include "review/lint.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/assert.h"
#include "base/format.h"
#include "base/text.h"
#include "review/lint_detail.h"

namespace capgate::review {
namespace detail {
namespace {

std::vector<Line> gather_lines(const core::Manifest& manifest) {
  std::vector<Line> out;
  std::unordered_map<std::string, std::size_t> known;
  for (std::uint32_t i = 0; i < manifest.declared.size(); ++i) {
    const core::Capability& capability = manifest.declared[i].capability;
    std::string text = print(capability);
    const auto [it, is_new] = known.try_emplace(text, out.size());
    if (is_new) out.push_back({.capability = &capability, .text = std::move(text), .where = {}});
    out[it->second].where.push_back(i);
  }
  return out;
}

}  // namespace

Linter::Linter(const LintInput& input)
    : input_(input),
      source_(std::string(input.file), input.document.source()),
      lines_(gather_lines(input.manifest)) {}

void Linter::about(const Line& line, Remark remark) {
  if (line.where.size() > 1) {
    remark.message += format(" (declared {} times)", line.where.size());
  }
  add({.where = manifest().declared[line.where.front()].where, .tool = {}, .capability = line.text},
      std::move(remark));
}

void Linter::about(std::uint32_t declared, Remark remark) {
  const core::Declared& each = manifest().declared[declared];
  const bool is_server = each.tool == core::Declared::whole_server;
  add({.where = each.where,
       .tool = is_server ? std::string() : manifest().tools[each.tool].name,
       .capability = print(each.capability)},
      std::move(remark));
}

void Linter::about_tool(std::uint32_t tool, Remark remark) {
  const core::Tool& each = manifest().tools[tool];
  add({.where = each.where, .tool = each.name, .capability = {}}, std::move(remark));
}

void Linter::about_all(Span where, Remark remark) {
  add({.where = where, .tool = {}, .capability = {}}, std::move(remark));
}

void Linter::add(Place place, Remark remark) {
  const Rule* known = find_rule(remark.rule);
  CAPGATE_ASSERT(known != nullptr);
  Finding finding{.rule = known->id,
                  .level = remark.level.value_or(known->level),
                  .message = std::move(remark.message),
                  .help = std::move(remark.help),
                  .file = std::string(input_.file),
                  .position = {},
                  .end = {},
                  .identity = place.tool + "\n" + place.capability,
                  .tool = std::move(place.tool),
                  .capability = std::move(place.capability),
                  .where = place.where};
  if (place.where != Span::nowhere()) {
    finding.position = source_.position(place.where.begin);
    finding.end = source_.position(place.where.end);
  }
  findings_.push_back(std::move(finding));
}

std::vector<Finding> Linter::take() && {
  sort_findings(findings_);
  // A line that stands three times in a tool is redundant once: a finding is known by its identity.
  std::set<std::pair<std::string_view, std::string_view>> known;
  std::erase_if(findings_, [&](const Finding& finding) {
    return !known.emplace(finding.rule, finding.identity).second;
  });
  return std::move(findings_);
}

bool is_system_path(std::string_view path) {
  constexpr std::string_view system[] = {"/bin", "/dev",  "/etc",  "/lib", "/lib64", "/opt",
                                         "/nix", "/proc", "/sbin", "/sys", "/usr"};
  if (path == "/tmp") return true;  // the sandbox's own; below it are paths of the host
  return std::ranges::any_of(
      system, [&](std::string_view each) { return core::is_at_or_below(path, each); });
}

std::string shown(std::string_view capability) { return escape_for_terminal(capability); }

}  // namespace detail

std::vector<Finding> lint(const LintInput& input) {
  detail::Linter linter(input);
  lint_annotations(linter);
  lint_network(linter);
  lint_secrets(linter);
  lint_local(linter);
  lint_order(linter);
  return std::move(linter).take();
}

}  // namespace capgate::review
