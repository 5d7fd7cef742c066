// Whether a value can be sealed: put into a request by the broker instead of by the server.
//
//   if (const auto problem = why_not_sealable(name, value)) refuse(*problem);
#pragma once

#include <optional>
#include <string_view>

#include "secrets/provider.h"

namespace capgate::secrets {

// A shorter one would be found everywhere in responses.
inline constexpr std::size_t shortest_sealed = 8;

[[nodiscard]] std::optional<Problem> why_not_sealable(std::string_view name,
                                                      std::string_view value);

}  // namespace capgate::secrets
