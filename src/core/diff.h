// What one manifest grants that another one does not: the review of a change, as a value.
//
//   const ManifestDiff change = diff(before, after);
//   change.is_wider()                  -> true
//   print(change.server[0].capability) -> "net:connect:evil.example:443"
//
// Semantic: the same grants in another order or spelling are no change, since both sides are merged
// first. Costs n log n.
#pragma once

#include <cstdint>
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
    moved,     // of one tool: it may do what before only others of the same server could
  };
  Kind kind = Kind::widened;
  // The grant of the new side; where it is gone, that of the old side.
  Capability capability;
  // What it was before, where it is the same thing with another extent: a limit, fs:read that
  // became fs:write, a host that lost its methods=.
  std::optional<Capability> before;
  // Declarations that cause it, in the manifest that has it: the new one, or the old one where the
  // grant is gone.
  Origins origins;
};

// A tool that is on one side only has the other kinds of `presence`.
struct ToolChange {
  enum class Presence : unsigned char { both, added, removed };
  std::string tool;
  Presence presence = Presence::both;
  std::vector<GrantChange> changes;  // may be empty where the tool is new or gone
};

struct ManifestDiff {
  std::vector<GrantChange> server;  // of the whole server; never `moved`
  std::vector<ToolChange> tools;    // those that changed, sorted by name

  [[nodiscard]] bool is_wider() const;  // the server may do something that it could not do before
  [[nodiscard]] bool is_empty() const;
};

// Both can be merged by themselves; the error is that of the one that cannot.
[[nodiscard]] Checked<ManifestDiff> diff(const Manifest& before, const Manifest& after);

}  // namespace capgate::core
