#include "cli/catalog_check.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "clients/catalog.h"
#include "core/manifest.h"
#include "core/merge.h"
#include "core/seal.h"
#include "lower/to_plan.h"
#include "text/json.h"

namespace capgate::cli {
namespace {

using clients::BindingRule;
using clients::CatalogEntry;

constexpr std::string_view home = "/home/alice";

void add(const Diagnostics& diagnostics, const Source& source, CatalogCheck& check) {
  for (const Diagnostic& diagnostic : diagnostics) {
    const auto [line, column] = source.position(diagnostic.where.begin);
    check.problems.push_back(
        format("{}:{}: {}: {}", line, column, code_name(diagnostic.code), diagnostic.message));
  }
}

std::string sample(const BindingRule& rule) {
  switch (rule.kind) {
    case BindingRule::Kind::path:
    case BindingRule::Kind::directory: return format("/srv/sample/{}", rule.variable);
    case BindingRule::Kind::url: return "https://service.example.com:8443/";
    case BindingRule::Kind::text: return "sample";
    case BindingRule::Kind::ignored:
    case BindingRule::Kind::flag: break;
  }
  return {};
}

enum class Optional : unsigned char { given, absent };

// A command that binds what an entry's rules can bind, each variable by its first rule.
clients::CommandContext sample_command(const CatalogEntry& entry, Optional optional) {
  clients::CommandContext context{.home = std::string(home), .directory = "/srv"};
  const auto is_wanted = [&](const BindingRule& rule) {
    return !rule.variable.empty() &&
           (optional == Optional::given || !contains(entry.optional, rule.variable));
  };
  for (const BindingRule& rule : entry.environment) {
    if (is_wanted(rule)) context.environment.push_back(format("{}={}", rule.source, sample(rule)));
  }
  for (const BindingRule& rule : entry.arguments) {
    if (!is_wanted(rule)) continue;
    if (rule.source.starts_with('-')) context.arguments.push_back(rule.source);
    context.arguments.push_back(sample(rule));
  }
  return context;
}

void compile(const CatalogEntry& entry, Optional optional, CatalogCheck& check) {
  auto bound = clients::bind_command(entry, sample_command(entry, optional));
  if (!bound) return add(bound.error(), Source(entry.name, ""), check);
  clients::Present present{.bindings = *bound};
  if (optional == Optional::given) present.environment = entry.optional;
  const auto document = text::parse_json(clients::manifest_for(entry, present));
  if (!document) return add(document.error(), Source(entry.name, entry.manifest), check);
  const Source source(entry.name, document->source());

  bound->push_back({.name = "HOME", .values = {std::string(home)}});
  bound->push_back({.name = "XDG_RUNTIME_DIR", .values = {"/run/user/1000"}});
  auto manifest = core::parse_manifest(*document, *bound);
  if (!manifest) return add(manifest.error(), source, check);
  check.tools = manifest->tools.size();
  for (const std::string& note : manifest->notes) check.problems.push_back(note);
  if (manifest->seal) add(core::seal_variables(*manifest), source, check);
  add(core::check_seals(*manifest), source, check);
  const auto policy = core::merge(*manifest, std::nullopt);
  if (!policy) return add(policy.error(), source, check);
  const lower::Options options{.home = std::string(home), .runtime_dir = "/run/user/1000"};
  const auto plan = lower::lower_to_plan(
      {.manifest = *manifest, .policy = *policy, .options = options, .source = &source});
  if (!plan) add(plan.error(), source, check);
}

// The same package in two entries is right only where the ranges differ.
void check_packages(const std::vector<CatalogEntry>& entries, std::vector<CatalogCheck>& checks) {
  std::vector<clients::Package> seen;
  for (const CatalogEntry& entry : entries) {
    const auto check = std::ranges::find(checks, entry.name, &CatalogCheck::name);
    for (const clients::Package& package : entry.packages) {
      if (contains(seen, package)) {
        check->problems.push_back(format("{} is in another entry, too", print(package)));
      }
      seen.push_back(package);
    }
  }
}

}  // namespace

CatalogCheck check_entry(std::string_view text) {
  CatalogCheck check;
  const auto entry = clients::parse_entry(std::string(text));
  if (!entry) {
    check.name = text.substr(0, 40);
    add(entry.error(), Source("entry", text), check);
    return check;
  }
  check.name = entry->name;
  compile(*entry, Optional::absent, check);
  compile(*entry, Optional::given, check);
  sort_and_deduplicate(check.problems);
  return check;
}

std::vector<CatalogCheck> check_catalog() {
  std::vector<CatalogCheck> checks;
  std::vector<CatalogEntry> entries;
  for (const std::string_view text : clients::catalog_texts()) {
    CatalogCheck check = check_entry(text);
    if (std::ranges::find(checks, check.name, &CatalogCheck::name) != checks.end()) {
      check.problems.emplace_back("another entry has this name");
    }
    checks.push_back(std::move(check));
    if (auto entry = clients::parse_entry(std::string(text))) entries.push_back(*std::move(entry));
  }
  check_packages(entries, checks);
  std::ranges::sort(checks, {}, &CatalogCheck::name);
  return checks;
}

}  // namespace capgate::cli
