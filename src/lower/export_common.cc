#include "lower/export_common.h"

#include "base/format.h"
#include "core/rights.h"
#include "core/sensitive.h"

namespace capgate::lower {
namespace {

template <typename Grants>
void refuse_all(const Grants& grants, std::string_view reason, Support& support) {
  for (const auto& grant : grants) {
    support.unsupported(grant.capability, grant.origins, std::string(reason), "use capgate run");
  }
}

}  // namespace

void write_list(text::JsonWriter& json, std::string_view key,
                const std::vector<std::string>& list) {
  json.key(key).begin_array();
  for (const std::string& item : list) json.string(item);
  json.end_array();
}

void refuse_kinds(const Input& input, const Reasons& reasons, Support& support) {
  refuse_all(input.policy.listen, reasons.listen, support);
  refuse_all(input.policy.programs, reasons.exec, support);
  refuse_all(input.policy.limits, reasons.limit, support);
}

void refuse_sealed(const Input& input, Support& support) {
  for (const auto& grant : input.policy.variables) {
    if (grant.capability.to.empty()) continue;
    support.unsupported(
        grant.capability, grant.origins,
        "only capgate's own broker keeps the value from the server, which would hold it here",
        format("use capgate run, or write env:inject:{} if the server may hold it",
               grant.capability.name));
  }
}

void refuse_requests(const ConnectGrant& grant, Support& support) {
  using core::NetRefinements;
  const NetRefinements& refine = grant.capability.refinements;
  const bool looks_inside = !refine.methods.empty() || !refine.paths.empty() ||
                            refine.sni == NetRefinements::Sni::strict ||
                            refine.proto == NetRefinements::Proto::tls ||
                            refine.proto == NetRefinements::Proto::http;
  if (!looks_inside) return;
  support.unsupported(grant.capability, grant.origins,
                      "it looks at the host and the port, not at what is said",
                      "write the host and the port alone, or use capgate run");
}

void refuse_split_writes(const FileGrant& grant, Support& support) {
  const core::FsActions actions = grant.capability.actions;
  if (!actions.has(core::FsAction::create) && !actions.has(core::FsAction::remove)) return;
  support.unsupported(grant.capability, grant.origins,
                      "what can be written there can be removed as well",
                      "write fs:write if both are meant, or use capgate run");
}

bool writes(const core::FsCapability& fs) {
  return core::rights_of(fs.actions).bits != core::FileRights::read;
}

std::vector<std::string> kept_from_writing(const Input& input, std::string_view base) {
  std::vector<std::string> out;
  for (const auto& startup : core::startup_below(base, input.options.home)) {
    if (!holds_a_grant(input.policy, startup.path)) out.push_back(startup.path);
  }
  for (const std::string_view name : core::protected_workspace_paths()) {
    std::string path = format("{}/{}", base, name);
    if (!holds_a_grant(input.policy, path)) out.push_back(std::move(path));
  }
  return out;
}

bool is_srt_domain(const core::HostPattern& host) {
  switch (host.kind) {
    case core::HostPattern::Kind::any: return false;
    case core::HostPattern::Kind::subdomains: return host.text.contains('.');
    case core::HostPattern::Kind::name: return host.text == "localhost" || host.text.contains('.');
    case core::HostPattern::Kind::ipv4:
    case core::HostPattern::Kind::ipv6: return true;
  }
  return false;
}

}  // namespace capgate::lower
