// The net:connect part of a merge: rules that another rule covers are folded into it.
#pragma once

#include <vector>

#include "core/policy.h"

namespace capgate::core {

void merge_net(std::vector<Granted<NetConnect>>& grants);

}  // namespace capgate::core
