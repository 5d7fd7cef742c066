// The definitions of a capability string, which the manifest and capgate.yaml share.
#pragma once

#include "review/schema_value.h"

namespace capgate::review {

// Members of $defs: `capability`, one for each kind, and `capability-0.0`.
[[nodiscard]] SchemaValue::Object capability_definitions();

}  // namespace capgate::review
