// A capability in words, for people who review one.
//
//   describe(parse "fs:read:/workspace/**")  -> "read and list /workspace and everything below it"
#pragma once

#include <string>
#include <string_view>

#include "core/capability.h"

namespace capgate::core {

[[nodiscard]] std::string describe(const Capability& capability);

// What keeps a server to it, in capgate's own engine.
[[nodiscard]] std::string_view enforcement(const Capability& capability);

// Where in a request a sealed secret stands: "the header authorization".
[[nodiscard]] std::string place_words(const SecretPlace& place);

}  // namespace capgate::core
