// Capability strings: <kind>:<actions>:<scope>[?refinement=value&...]
//
//   parse_capability("fs:read,write:/workspace/**", {})  -> one FsCapability
//   parse_capability("fs:read:${ROOT}/**", bindings)     -> one for each value of ROOT
//
// This is the only place that reads them. It checks syntax alone; whether a scope may be granted is
// core/scope.h. Values of variables are put into a field after the string has been split, so that
// no value can add a field, an action or a refinement.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/capability.h"

namespace capgate::core {

// --set NAME=VALUE, in the order given; a name may have several values.
struct Binding {
  std::string name;
  std::vector<std::string> values;
};
using Bindings = std::vector<Binding>;

// The value of a variable that has exactly one meaning, such as HOME; empty when it is not bound.
[[nodiscard]] std::string_view first_value(const Bindings& bindings, std::string_view name);

// Several capabilities come from one string only through a variable with several values. The
// position in a diagnostic counts from the start of `text`.
[[nodiscard]] Result<std::vector<Capability>> parse_capability(std::string_view text,
                                                               const Bindings& bindings);

// Names of the variables that `text` uses, as ${NAME}; for telling an unused --set from a used one.
[[nodiscard]] std::vector<std::string_view> variables_in(std::string_view text);

// What of 0.1 a string uses that the earlier language (0.0) did not have, in words; or nothing.
[[nodiscard]] std::optional<std::string> feature_beyond_0_0(std::string_view text,
                                                            const Capability& capability);

}  // namespace capgate::core
