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

int undeclared(const std::string& name, const std::vector<std::string>& declared, Output& output) {
  return usage_error(format("--secret {}: no env:inject:{} is declared", name, name),
                     declared.empty()
                         ? format("declare it, in the manifest or with --allow env:inject:{}", name)
                         : format("declared are: {}", join(declared, ", ")),
                     output);
}

}  // namespace

std::expected<std::vector<secrets::Binding>, int> read_secret_options(const Arguments& arguments,
                                                                      const lower::Plan& plan,
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
      return std::unexpected(undeclared(binding->name, declared, output));
    }
    const bool is_again = std::ranges::any_of(
        out, [&](const auto& earlier) { return earlier.name == binding->name; });
    if (is_again) {
      return std::unexpected(
          usage_error(format("--secret {} is given twice", binding->name),
                      "bind each name once: which one would be meant is not guessed", output));
    }
    out.push_back(*std::move(binding));
  }
  return out;
}

}  // namespace capgate::cli
