// Whether a policy already allows what a grant would allow: the one meaning of "covered" and
// "beyond", for reviews of a change and for what a project may say without approval.
//
//   const Holdings held(policy, home);
//   covers({&held}, parse "fs:read:/w/a")   -> true where the policy grants fs:write:/w/**
//
// Adding a covered grant to the policy changes nothing (core/merge.h). Beyond what a merge folds, a
// rule with methods=GET is covered by one with methods=GET,POST, and sni=strict by the default: a
// merge keeps both rules, but together they allow no more than the wider one.
//
// Building costs n log n, a question log n.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/policy.h"

namespace capgate::core {

// Looks a policy up. Keeps views: policy and home must outlive it.
class Holdings {
 public:
  Holdings(const Policy& policy, std::string_view home);

  // The grant of exactly this target, or nothing.
  [[nodiscard]] const Granted<FsCapability>* find(std::string_view base,
                                                  std::string_view glob) const;
  // The grant that is responsible for a path, if there is one.
  [[nodiscard]] const Granted<FsCapability>* nearest(const PathPattern& path) const;

  // One request of a rule: empty parts stand for all of them.
  struct Request {
    std::string_view method;
    std::string_view path;
  };
  [[nodiscard]] bool allows(const NetConnect& rule, const Request& request) const;
  [[nodiscard]] bool has(const NetConnect& rule) const;
  // A rule for the same endpoint or one that covers it, whatever its refinements.
  [[nodiscard]] const Granted<NetConnect>* nearest(const Endpoint& endpoint) const;

  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] std::string_view home() const { return home_; }

 private:
  struct Atom {
    const NetConnect* rule = nullptr;
    Request request;
  };
  [[nodiscard]] bool allows_at(const Endpoint& endpoint, const NetConnect& rule,
                               const Request& request) const;
  [[nodiscard]] bool has_atom(const Endpoint& endpoint, const NetConnect& rule,
                              const Request& request) const;

  const Policy& policy_;
  std::string_view home_;
  std::vector<Atom> atoms_;  // sorted by endpoint, method and path
};

// Policies that hold together, such as serverCapabilities and those of a tool.
using Layers = std::span<const Holdings* const>;

// For grants; and for a limit, whether the one that holds, stated or by default, is as large or
// there is none. An assertion grants nothing, so it is always covered.
[[nodiscard]] bool covers(Layers held, const Capability& grant);

// The grant of the same thing with another extent, if there is one: fs:read for fs:write, the same
// host with other methods.
[[nodiscard]] std::optional<Capability> related(Layers held, const Capability& grant);

// The limit of this kind that is stated: the largest, or nothing.
[[nodiscard]] std::optional<LimitCapability> limit_of(Layers held, LimitCapability::Kind kind);
// The one that holds: what is stated, else the default (core/limits.h). Nothing: no limit at all.
[[nodiscard]] std::optional<LimitCapability> limit_kept(Layers held, LimitCapability::Kind kind);
[[nodiscard]] const AssertCapability* assertion_of(Layers held, std::string_view id);

}  // namespace capgate::core
