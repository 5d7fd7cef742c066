// The steps of `capgate compile`, for the library.
#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/prepare.h"
#include "core/variables.h"
#include "library/state.h"
#include "lower/choices.h"
#include "lower/targets.h"
#include "text/json_or_yaml.h"

namespace capgate::v0 {
namespace {

Expected<core::Bindings> read_bindings(const std::vector<Variable>& variables) {
  core::Bindings bindings;
  bindings.reserve(variables.size());
  for (const Variable& variable : variables) {
    if (!core::is_variable_name(variable.name)) {
      return option_error(format("a variable cannot be named {}", quoted(variable.name)),
                          "write its name with upper-case letters, digits and underscores");
    }
    auto binding = std::ranges::find(bindings, variable.name, &core::Binding::name);
    if (binding == bindings.end()) {
      binding = bindings.insert(bindings.end(), {.name = variable.name, .values = {}});
    }
    binding->values.insert(binding->values.end(), variable.values.begin(), variable.values.end());
  }
  return bindings;
}

core::Validators validators_of(const CompileOptions& options) {
  if (!options.validators) return {};
  return core::Validators(std::in_place, options.validators->begin(), options.validators->end());
}

Expected<lower::Options> read_options(lower::Options out, const lower::Target& target,
                                      const LowerOptions& options) {
  out.user = options.user;
  out.writable_root = options.writable_root;
  out.arch = options.arch == Arch::aarch64 ? lower::Arch::aarch64 : lower::Arch::x86_64;
  out.programs = options.programs;
  out.image = options.image;
  out.broker_image = options.broker_image;
  out.rootful = options.rootful;
  out.cilium = options.cilium;
  out.command = options.command;
  out.egress_dir = options.egress_dir;
  out.egress_port = options.egress_port;
  out.egress_target = options.egress_target;
  out.script = options.script;
  if (auto mistake = lower::settle_options(target, out, "")) {
    return option_error(std::move(mistake->message), std::move(mistake->help));
  }
  for (const std::string& text : options.accept_unenforced) {
    const auto parsed = core::parse_capability(text, {});
    if (!parsed) {
      return option_error(format("{} cannot be accepted: {}", quoted(text), parsed.error().message),
                          "name the capability as the diagnostic prints it");
    }
    out.accepted.push_back(print(parsed->front()));
  }
  return out;
}

}  // namespace

Expected<NamedDocument> read_document(std::string_view text, std::string_view name) {
  const text::SharedText shared = text::share(std::string(text));
  auto document = text::parse_json_or_yaml(name, shared);
  if (!document) return errors_of(document.error(), Source(std::string(name), *shared));
  return NamedDocument{.name = std::string(name),
                       .document = std::make_shared<const text::Document>(*std::move(document))};
}

Expected<Manifest> outline(NamedDocument text) {
  auto manifest = core::outline_manifest(*text.document);
  if (!manifest) return errors_of(manifest.error(), text.source());
  ManifestState state{
      .text = std::move(text), .outline = *std::move(manifest), .tools = {}, .variables = {}};
  state.tools.reserve(state.outline.tools.size());
  for (const core::Tool& tool : state.outline.tools) state.tools.push_back(tool.name);
  state.variables = state.outline.used_variables;
  sort_and_deduplicate(state.variables);
  return Access::make(std::make_shared<const ManifestState>(std::move(state)));
}

Expected<Policy> compile_document(NamedDocument text, const CompileOptions& options) {
  const auto bindings = read_bindings(options.variables);
  if (!bindings) return bindings.error();
  const Source source = text.source();
  auto manifest = core::parse_manifest(*text.document, *bindings);
  if (!manifest) return errors_of(manifest.error(), source);
  if (auto mistake = core::find_binding_mistake(*bindings, *manifest, "variable ")) {
    return option_error(std::move(mistake->message), std::move(mistake->help));
  }
  auto policy = core::make_policy(*manifest, {.tool = options.tool, .seal = options.seal});
  if (!policy) return errors_of(policy.error(), source);
  core::Validators validators = validators_of(options);
  const Diagnostics unverified = core::check_assertions(*policy, *manifest, validators);
  if (!unverified.empty()) return errors_of(unverified, source);

  PolicyState state{.text = std::move(text),
                    .manifest = *std::move(manifest),
                    .policy = *std::move(policy),
                    .options = {.home = core::host_path(*bindings, "HOME"),
                                .runtime_dir = core::host_path(*bindings, "XDG_RUNTIME_DIR"),
                                .tool = options.tool.value_or(""),
                                .seal = options.seal,
                                .validators = std::move(validators)},
                    .capabilities = {}};
  state.capabilities = core::policy_lines(state.policy);
  return Access::make(std::make_shared<const PolicyState>(std::move(state)));
}

Expected<Artifact> lower_policy(const Policy& policy, std::string_view name,
                                const LowerOptions& options) {
  const lower::Target* target = lower::find_target(name);
  if (target == nullptr) {
    return option_error(format("there is no target {}", quoted(name)),
                        "the names are those of `capgate targets`");
  }
  const PolicyState& state = Access::state(policy);
  const auto chosen = read_options(state.options, *target, options);
  if (!chosen) return chosen.error();
  const Source source = state.text.source();
  const lower::Input input{state.manifest, state.policy, *chosen, &source};
  auto artifact = lower_to(*target, input);
  if (!artifact) return errors_of(artifact.error(), source);
  using Style = text::JsonWriter::Style;
  std::string json = print_json(*artifact, input, options.pretty ? Style::pretty : Style::compact);
  json += '\n';
  return Artifact(std::string(target->name), std::move(json), std::move(artifact->unenforced));
}

}  // namespace capgate::v0
