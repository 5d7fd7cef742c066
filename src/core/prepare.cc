#include "core/prepare.h"

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/merge.h"
#include "core/path.h"
#include "core/seal.h"

namespace capgate::core {
namespace {

// Names that capgate itself reads, whether or not the manifest uses them.
constexpr std::string_view host_variables[] = {"HOME", "XDG_RUNTIME_DIR"};

Diagnostics unknown_tool(const Manifest& manifest, std::string_view tool) {
  std::vector<std::string_view> names;
  names.reserve(manifest.tools.size());
  for (const Tool& known : manifest.tools) names.emplace_back(known.name);
  const auto best = closest(tool, names);
  return {{.code = Code::tool_unknown,
           .where = Span::nowhere(),
           .message = format("there is no tool {}", quoted(tool)),
           .help = best ? format("did you mean {}?", escape_for_terminal(*best))
                        : "the names are in the manifest's tools"}};
}

Diagnostics seal(Manifest& manifest, bool everything) {
  Diagnostics mistakes;
  if (everything || manifest.seal) mistakes = seal_variables(manifest);
  if (mistakes.empty()) mistakes = check_seals(manifest);
  return mistakes;
}

}  // namespace

std::optional<BindingMistake> find_binding_mistake(const Bindings& bindings,
                                                   const Manifest& manifest,
                                                   std::string_view option) {
  for (const Binding& binding : bindings) {
    if (!contains(host_variables, std::string_view(binding.name))) {
      if (contains(manifest.used_variables, binding.name)) continue;
      return BindingMistake{.message = format("{}{} is not used", option, binding.name),
                            .help = "no capability holds this variable; check its name"};
    }
    const auto path = parse_plain_path(first_value(bindings, binding.name));
    if (binding.values.size() != 1 || !path || *path == "/") {
      return BindingMistake{.message = format("{}{} takes one absolute path", option, binding.name),
                            .help = format("write {}{}=/home/alice", option, binding.name)};
    }
  }
  return {};
}

std::string host_path(const Bindings& bindings, std::string_view name) {
  const std::string_view value = first_value(bindings, name);
  return value.empty() ? std::string() : parse_plain_path(value).value_or("");
}

Checked<Policy> make_policy(Manifest& manifest, const Choice& choice) {
  std::optional<std::uint32_t> tool;
  if (choice.tool) {
    tool = manifest.find_tool(*choice.tool);
    if (!tool) return std::unexpected(unknown_tool(manifest, *choice.tool));
  }
  if (Diagnostics mistakes = seal(manifest, choice.seal); !mistakes.empty()) {
    return std::unexpected(std::move(mistakes));
  }
  return merge(manifest, tool);
}

}  // namespace capgate::core
