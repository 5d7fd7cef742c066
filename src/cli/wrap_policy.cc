#include "cli/wrap_policy.h"

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "clients/entry_manifest.h"
#include "core/manifest.h"
#include "core/merge.h"
#include "core/seal.h"
#include "sys/file.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::cli {
namespace {

using View = std::expected<PolicyView, std::string>;

std::unexpected<std::string> first_of(const Diagnostics& mistakes) {
  const Diagnostic& first = mistakes.front();
  return std::unexpected(first.help.empty() ? first.message
                                            : format("{}; {}", first.message, first.help));
}

core::Bindings with_home(core::Bindings bindings, const std::string& home) {
  if (core::first_value(bindings, "HOME").empty()) {
    bindings.push_back({.name = "HOME", .values = {home}});
  }
  return bindings;
}

bool can_seal(core::Manifest manifest) {
  return core::seal_variables(manifest).empty() && core::check_seals(manifest).empty();
}

View view_of(const text::Document& document, const core::Bindings& bindings) {
  const auto manifest = core::parse_manifest(document, bindings);
  if (!manifest) return first_of(manifest.error());
  const auto policy = core::merge(*manifest);
  if (!policy) return first_of(policy.error());
  PolicyView out{.lines = core::policy_lines(*policy)};
  for (const auto& granted : policy->variables) {
    if (granted.capability.action == core::EnvCapability::Action::inject) {
      out.injected.push_back(granted.capability.name);
    }
  }
  sort_and_deduplicate(out.injected);
  out.is_sealable = !out.injected.empty() && can_seal(*manifest);
  return out;
}

// A manifest file that an entry names.
View view_file(const std::string& path, const core::Bindings& bindings) {
  auto text = sys::read_file(path, text::largest_document);
  if (!text) {
    return std::unexpected(
        format("cannot read {}: {}", escape_for_terminal(path), sys::reason(text.error())));
  }
  const bool is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  const auto document =
      is_yaml ? text::parse_yaml(*std::move(text)) : text::parse_json(*std::move(text));
  return document ? view_of(*document, bindings) : first_of(document.error());
}

}  // namespace

View view_catalog_policy(const clients::CatalogEntry& entry, const core::Bindings& bindings,
                         const PolicyContext& context) {
  const auto document = text::parse_json(
      clients::manifest_for(entry, {.bindings = bindings, .environment = context.environment}));
  if (!document) return first_of(document.error());
  return view_of(*document, with_home(bindings, context.home));
}

View view_policy(const clients::FoundServer& found, const PolicyContext& context) {
  const clients::ServerConfig& server = found.server;
  const core::Bindings bindings = with_home(server.variables, context.home);
  const std::string_view manifest = server.manifest;
  if (manifest.starts_with(clients::catalog_prefix)) {
    const auto* entry = clients::find_entry(manifest.substr(clients::catalog_prefix.size()));
    if (entry == nullptr) return std::unexpected(format("there is no {}", quoted(manifest)));
    return view_catalog_policy(*entry, server.variables, context);
  }
  if (!manifest.empty()) return view_file(server.manifest, bindings);
  return view_of(clients::entry_manifest(server, found.text), bindings);
}

}  // namespace capgate::cli
