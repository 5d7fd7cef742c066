#include "cli/secret_options.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

std::vector<std::string> declared_names(const lower::Plan& plan) {
  std::vector<std::string> out = plan.env_inject;
  for (const lower::PlanSeal& seal : plan.seals) out.push_back(seal.env.name);
  sort_and_deduplicate(out);
  return out;
}

// Where a binding stands: an option, or a file with its entry.
int undeclared(std::string_view place, const std::string& name,
               const std::vector<std::string>& declared, Output& output) {
  return usage_error(format("{} {}: no env:inject:{} is declared", place, name, name),
                     declared.empty()
                         ? format("declare it, in the manifest or with --allow env:inject:{}", name)
                         : format("declared are: {}", join(declared, ", ")),
                     output);
}

bool is_bound(const std::vector<secrets::Binding>& bindings, std::string_view name) {
  return std::ranges::any_of(bindings, [&](const auto& each) { return each.name == name; });
}

}  // namespace

std::expected<std::vector<secrets::Binding>, int> read_secret_options(
    const Arguments& arguments, const ConfiguredSecrets& configured, const lower::Plan& plan,
    Output& output) {
  const std::vector<std::string> declared = declared_names(plan);
  std::vector<secrets::Binding> out;
  for (const std::string& text : arguments.values(secret_option.name)) {
    auto binding = secrets::parse_binding(text);
    if (!binding) {
      return std::unexpected(usage_error(format("--secret: {}", binding.error().message),
                                         binding.error().help, output));
    }
    if (!contains(declared, binding->name)) {
      return std::unexpected(undeclared("--secret", binding->name, declared, output));
    }
    if (is_bound(out, binding->name)) {
      return std::unexpected(
          usage_error(format("--secret {} is given twice", binding->name),
                      "bind each name once: which one would be meant is not guessed", output));
    }
    out.push_back(*std::move(binding));
  }
  for (const std::string& text : configured.bindings) {
    auto binding = secrets::parse_binding(text);
    if (!binding) {
      return std::unexpected(usage_error(
          format("{}: secrets: {}", escape_for_terminal(configured.file), binding.error().message),
          binding.error().help, output));
    }
    if (is_bound(out, binding->name)) continue;
    if (!contains(declared, binding->name)) {
      if (configured.only_declared) continue;
      return std::unexpected(
          undeclared(format("{}: secrets:", escape_for_terminal(configured.file)), binding->name,
                     declared, output));
    }
    out.push_back(*std::move(binding));
  }
  return out;
}

}  // namespace capgate::cli
