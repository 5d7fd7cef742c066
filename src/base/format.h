// Text with fmt, compiled once: only format.cc pays for the implementation.
//
//   format("{} tools, {} capabilities", tools, capabilities)
#pragma once

#include <fmt/core.h>

#include <string>

namespace capgate {

[[nodiscard]] std::string vformat(fmt::string_view pattern, fmt::format_args args);

template <typename... Args>
[[nodiscard]] std::string format(fmt::format_string<Args...> pattern, Args&&... args) {
  return capgate::vformat(pattern, fmt::make_format_args(args...));
}

}  // namespace capgate
