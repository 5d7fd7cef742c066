#include "core/grammar.h"

#include "core/grammar_detail.h"
#include "core/variables.h"

namespace capgate::core {
namespace {

using KindParser = Result<Capability> (*)(const Fields&);
struct Kind {
  std::string_view name;
  KindParser parse;  // none: assert, whose text is free
};
constexpr Kind kinds[] = {
    {"fs", grammar::parse_fs},       {"net", grammar::parse_net}, {"exec", grammar::parse_exec},
    {"env", grammar::parse_env},     {"ipc", grammar::parse_ipc}, {"clock", grammar::parse_clock},
    {"limit", grammar::parse_limit}, {"assert", nullptr},
};

Result<const Kind*> find_kind(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (colon == std::string_view::npos) {
    return fail(Code::cap_malformed, Span::at(0, text.size()),
                "a capability has at least a kind and a scope",
                "write <kind>:<actions>:<scope>, for example fs:read:/workspace/**");
  }
  const auto* kind = std::ranges::find(kinds, name, &Kind::name);
  if (kind != std::end(kinds)) return kind;
  std::vector<std::string_view> names;
  for (const Kind& known : kinds) names.push_back(known.name);
  return fail(Code::cap_unknown_kind, Span::at(0, colon),
              format("unknown capability kind {}", quoted(name)),
              grammar::did_you_mean(name, names));
}

}  // namespace

std::string_view first_value(const Bindings& bindings, std::string_view name) {
  const auto binding = std::ranges::find(bindings, name, &Binding::name);
  return binding == bindings.end() || binding->values.empty() ? std::string_view()
                                                              : binding->values.front();
}

Result<std::vector<Capability>> parse_capability(std::string_view text, const Bindings& bindings) {
  const Kind* kind = TRY(find_kind(text));
  TextStorage storage;
  const Fields fields = TRY(cut_fields(text, storage));
  std::vector<Capability> out;
  if (kind->parse == nullptr) {
    out.push_back(TRY(grammar::parse_assert(fields, storage)));
    return out;
  }
  if (!text.contains("${")) {
    out.push_back(TRY(kind->parse(fields)));
    return out;
  }
  for (const Fields& expanded : TRY(expand_variables(fields, bindings, storage))) {
    out.push_back(TRY(kind->parse(expanded)));
  }
  return out;
}

std::vector<std::string_view> variables_in(std::string_view text) {
  std::vector<std::string_view> names;
  if (!text.contains('$') || text.starts_with("assert:")) return names;
  for (std::size_t at = text.find("${"); at != std::string_view::npos;
       at = text.find("${", at + 2)) {
    const std::size_t end = text.find('}', at);
    if (end != std::string_view::npos) names.push_back(text.substr(at + 2, end - at - 2));
  }
  return names;
}

std::optional<std::string> feature_beyond_0_0(std::string_view text, const Capability& capability) {
  if (!variables_in(text).empty()) return "a variable";
  if (const auto* fs = std::get_if<FsCapability>(&capability); fs != nullptr && fs->unsafe) {
    return "?unsafe=true";
  }
  if (const auto* net = std::get_if<NetConnect>(&capability)) {
    if (net->endpoint.host.kind == HostPattern::Kind::subdomains) return "a wildcard name";
    if (text.contains('[')) return "a bracketed IPv6 address";
    if (net->refinements != NetRefinements{}) return "a refinement of net";
  }
  if (std::holds_alternative<NetListen>(capability)) return "net:listen";
  if (const auto* env = std::get_if<EnvCapability>(&capability)) {
    if (!env->to.empty()) return "a sealed variable";
    if (env->unsafe) return "?unsafe=true";
  }
  if (const auto* ipc = std::get_if<IpcCapability>(&capability)) {
    using enum IpcCapability::Kind;
    if (ipc->kind == self || ipc->kind == netlink_route) return print(capability);
    if (ipc->kind != x11 && !text.contains('"')) return "an endpoint without quotes";
    if (ipc->unsafe) return "?unsafe=true";
  }
  if (std::holds_alternative<LimitCapability>(capability)) return "limit";
  return {};
}

}  // namespace capgate::core
