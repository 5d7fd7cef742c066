#include "core/diff.h"

#include <algorithm>

namespace capgate::core {

bool ManifestDiff::is_wider() const {
  return std::ranges::any_of(
      server, [](const GrantChange& change) { return change.kind == GrantChange::Kind::widened; });
}

bool ManifestDiff::is_empty() const { return server.empty() && tools.empty(); }

Checked<ManifestDiff> diff(const Manifest&, const Manifest&) { return ManifestDiff{}; }

}  // namespace capgate::core
