// What one manifest grants that another one does not: the review of a change, as a value.
//
//   const ManifestDiff change = *diff(before, after);
//   change.is_wider()                      -> true
//   print(change.server[0].subject())      -> "net:connect:evil.example:443"
//
// Semantic: the same grants in another order or spelling are no change, since both sides are merged
// first and grants are compared by what they allow (core/holdings.h). Costs n log n.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/manifest.h"
#include "core/policy.h"

namespace capgate::core {

struct GrantChange {
  enum class Kind : unsigned char {
    widened,   // more than before: a grant, a bigger limit, a bound that is gone
    narrowed,  // less than before
    moved,     // of a tool: it may do what before only others of the same server could
  };
  Kind kind = Kind::widened;
  // Both where it is the same thing with another extent: a limit, fs:read that became fs:write, a
  // host that lost its methods=. A grant that is gone has no `after`, and neither has a bound that
  // is no longer stated: of a limit the default holds then (core/limits.h), and is compared.
  std::optional<Capability> before;
  std::optional<Capability> after;
  // The declarations of subject(), in the manifest that has it.
  Origins origins;

  enum class Side : unsigned char { before, after };
  // Where subject() and origins are from: of what widened the new side, of what narrowed the old
  // one; the other side where that one has nothing.
  [[nodiscard]] Side side() const;
  [[nodiscard]] const Capability& subject() const;
};

struct ToolChange {
  enum class Presence : unsigned char {
    both,
    added,
    removed,
    every,  // serverCapabilities, which every tool has; `tool` is empty
  };
  std::string tool;
  Presence presence = Presence::both;
  std::vector<GrantChange> changes;  // may be empty where the tool is new or gone
};

struct ManifestDiff {
  std::vector<GrantChange> server;  // of the whole server; never `moved`
  std::vector<ToolChange> tools;    // those that changed: every tool first, then sorted by name

  [[nodiscard]] bool is_wider() const;   // the server may do something that it could not do before
  [[nodiscard]] bool has_moved() const;  // a tool may, though the server as a whole could
  [[nodiscard]] bool is_empty() const;
};

// Fails where one of the two cannot be merged by itself; then `mistakes` are that one's.
struct DiffError {
  GrantChange::Side side = GrantChange::Side::before;
  Diagnostics mistakes;
};

[[nodiscard]] std::expected<ManifestDiff, DiffError> diff(const Manifest& before,
                                                          const Manifest& after);

}  // namespace capgate::core
