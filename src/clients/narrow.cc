#include "clients/narrow.h"

#include <algorithm>
#include <variant>

#include "core/holdings.h"
#include "core/merge.h"
#include "core/policy.h"

namespace capgate::clients {
namespace {

using core::AssertCapability;
using core::Capability;
using core::Declared;
using core::LimitCapability;
using core::Manifest;

// Only what merge() looks at.
Manifest flat(const Manifest& manifest) {
  Manifest out;
  out.home = manifest.home;
  out.declared = manifest.declared;
  for (Declared& declared : out.declared) declared.tool = Declared::whole_server;
  return out;
}

// Two bounds of one kind: the same limit, or the same assertion.
bool is_same_bound(const Capability& a, const Capability& b) {
  const auto* limit = std::get_if<LimitCapability>(&a);
  const auto* other_limit = std::get_if<LimitCapability>(&b);
  if (limit != nullptr && other_limit != nullptr) return limit->kind == other_limit->kind;
  const auto* assertion = std::get_if<AssertCapability>(&a);
  const auto* other = std::get_if<AssertCapability>(&b);
  return assertion != nullptr && other != nullptr && assertion->id == other->id;
}

}  // namespace

std::vector<std::string> grants_beyond(const Manifest& base, const Manifest& wanted) {
  std::vector<std::string> out;
  const auto users = core::merge(flat(base));
  const auto projects = core::merge(flat(wanted));
  if (!projects) return out;
  const core::Policy nothing;
  const core::Holdings held(users ? *users : nothing, base.home);
  const core::Holdings* layers[] = {&held};
  core::for_each_grant(*projects, [&](const Capability& grant, const core::Origins&) {
    if (!users || !core::covers(layers, grant)) out.push_back(print(grant));
  });
  return out;
}

void keep_bounds(const Manifest& base, Manifest& wanted) {
  std::vector<Declared> kept;
  for (const Declared& bound : base.declared) {
    const bool is_bound = std::holds_alternative<LimitCapability>(bound.capability) ||
                          std::holds_alternative<AssertCapability>(bound.capability);
    const bool is_stated = std::ranges::any_of(wanted.declared, [&](const Declared& own) {
      return is_same_bound(own.capability, bound.capability);
    });
    if (!is_bound || is_stated) continue;
    kept.push_back({.capability = bound.capability, .where = Span::nowhere()});
  }
  wanted.declared.insert(wanted.declared.end(), kept.begin(), kept.end());
}

}  // namespace capgate::clients
