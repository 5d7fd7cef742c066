// What a server holds instead of a sealed value: random, of a shape that its client library
// accepts.
//
//   make_placeholder("ghp_16C7e42F292c6912E7710c838347Ae178B4a", random)
//       -> "ghp_" and 36 other letters and digits
//
// It has the value's length (at least 20), the value's alphabet as a whole (hexadecimal, or letters
// and digits) and a prefix only if it is one of the well-known public ones ("ghp_", "sk-ant-",
// ...): it tells nothing else of the value. It is no secret; it must only never occur by accident.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace capgate::secrets {

inline constexpr std::size_t shortest_placeholder = 20;

// Pure. `random`: at least as many bytes as the result is long; 64 + value.size() suffices.
[[nodiscard]] std::string make_placeholder(std::string_view value,
                                           std::span<const std::uint8_t> random);

}  // namespace capgate::secrets
