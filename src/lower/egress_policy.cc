#include "lower/egress_policy.h"

#include "core/built_in.h"
#include "text/yaml_write.h"

namespace capgate::lower {
namespace {

using core::NetRefinements;
using text::YamlWriter;

void write_list(YamlWriter& yaml, std::string_view key, const std::vector<std::string>& items) {
  if (items.empty()) return;
  yaml.key(key).begin_list();
  for (const std::string& item : items) yaml.string(item);
  yaml.end_list();
}

void write_rule(YamlWriter& yaml, const core::NetConnect& rule) {
  const NetRefinements& refine = rule.refinements;
  yaml.begin_map().key("connect").string(print(rule.endpoint));
  yaml.key("blockPrivate").boolean(!core::names_private_endpoint(rule.endpoint.host));
  if (refine.sni != NetRefinements::Sni::match) {
    yaml.key("sni").string(refine.sni == NetRefinements::Sni::any ? "any" : "strict");
  }
  if (refine.proto != NetRefinements::Proto::detect) {
    constexpr std::string_view names[] = {"detect", "tcp", "tls", "http"};
    yaml.key("proto").string(names[static_cast<std::size_t>(refine.proto)]);
  }
  write_list(yaml, "methods", refine.methods);
  write_list(yaml, "paths", refine.paths);
  if (refine.private_network) yaml.key("private").boolean(true);
  yaml.end_map();
}

}  // namespace

std::string egress_policy_yaml(const Input& input) {
  const core::Policy& policy = input.policy;
  YamlWriter yaml;
  yaml.begin_map().key("capgateEgress").number(1);
  yaml.key("server").string(input.manifest.name);
  yaml.key("policyHash").string(policy.hash);
  yaml.key("rules").begin_list();
  for (const auto& grant : policy.connect) write_rule(yaml, grant.capability);
  yaml.end_list().key("listen").begin_list();
  for (const auto& grant : policy.listen) yaml.number(grant.capability.port);
  yaml.end_list().key("publicOnly").boolean(core::is_public_only(policy)).end_map();
  return std::move(yaml).take();
}

void refuse_unseen_requests(const Input& input, Support& support) {
  for (const auto& grant : input.policy.connect) {
    const NetRefinements& refine = grant.capability.refinements;
    if (refine.methods.empty() && refine.paths.empty()) continue;
    if (refine.proto == NetRefinements::Proto::http) continue;
    support.unsupported(grant.capability, grant.origins,
                        "methods and paths are seen in plain HTTP; inside TLS only by capgate run, "
                        "where a sealed secret goes",
                        "add proto=http if the server speaks plain HTTP, use the native engine, or "
                        "remove methods= and paths=");
  }
}

void refuse_listeners(const Input& input, Support& support) {
  for (const auto& grant : input.policy.listen) {
    support.unsupported(grant.capability, grant.origins,
                        "the sandbox has a network of its own that nobody else reaches",
                        "use the native engine");
  }
}

}  // namespace capgate::lower
