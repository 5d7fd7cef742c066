// The fs part of a merge: one grant per path that adds something to what its parents grant.
#pragma once

#include <vector>

#include "core/policy.h"

namespace capgate::core {

// Leaves in `grants` the normal form of their union, sorted bytewise by path. The rights of a grant
// are all that hold at its path, those of its parents included.
void merge_files(std::vector<Granted<FsCapability>>& grants);

}  // namespace capgate::core
