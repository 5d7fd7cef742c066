#include "clients/narrow.h"

#include <algorithm>
#include <variant>

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
Manifest with(const Manifest& base, const std::vector<Capability>& more) {
  Manifest out;
  out.home = base.home;
  out.declared = base.declared;
  for (Declared& declared : out.declared) declared.tool = Declared::whole_server;
  for (const Capability& capability : more) {
    out.declared.push_back({.capability = capability, .where = Span::nowhere()});
  }
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
  const auto users = core::merge(with(base, {}));
  const auto projects = core::merge(with(wanted, {}));
  if (!projects) return out;
  std::vector<Capability> grants;
  core::for_each_grant(*projects, [&](const Capability& capability, const core::Origins&) {
    // An assertion is a promise, not a grant.
    if (!std::holds_alternative<AssertCapability>(capability)) grants.push_back(capability);
  });
  const auto is_covered = [&](const std::vector<Capability>& more) {
    if (!users) return false;
    const auto both = core::merge(with(base, more));
    return both && both->hash == users->hash;
  };
  if (is_covered(grants)) return out;
  for (const Capability& grant : grants) {
    if (!is_covered({grant})) out.push_back(print(grant));
  }
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
