// The schema of capgate.yaml; that of a manifest is in schema.cc.
#pragma once

#include "review/schema_value.h"

namespace capgate::review {

[[nodiscard]] SchemaValue config_schema();

}  // namespace capgate::review
