// The version of this compiler, which every artifact carries.
#pragma once

#include <string_view>

namespace capgate::core {

inline constexpr std::string_view version = "0.1.0";
inline constexpr std::string_view compiler_id = "capgate 0.1.0";

}  // namespace capgate::core
