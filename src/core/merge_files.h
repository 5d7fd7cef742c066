// The fs part of a merge: one grant per path that adds something to what its parents grant.
#pragma once

#include <string_view>
#include <vector>

#include "core/policy.h"

namespace capgate::core {

// Leaves in `grants` the normal form of their union, sorted bytewise by path. The rights of a grant
// are all that hold at its path, those of its parents included. A credential path that is named
// itself is kept although a parent covers it: inside the parent alone it would stay hidden. `home`
// is the caller's home directory, or empty.
void merge_files(std::vector<Granted<FsCapability>>& grants, std::string_view home);

}  // namespace capgate::core
