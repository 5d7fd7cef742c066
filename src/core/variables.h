// ${NAME} in the fields of a capability: replaced by the bound values after the string was cut, so
// that a value can never add a field, an action or a refinement.
#pragma once

#include <string_view>
#include <vector>

#include "core/fields.h"
#include "core/grammar.h"

namespace capgate::core {

// Upper-case letters, digits and underscores, not starting with a digit.
[[nodiscard]] bool is_variable_name(std::string_view name);

// One Fields for each combination of values.
[[nodiscard]] Result<std::vector<Fields>> expand_variables(const Fields& fields,
                                                           const Bindings& bindings,
                                                           TextStorage& storage);

}  // namespace capgate::core
