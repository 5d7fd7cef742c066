// Why the store does not do what it is asked. No text of it holds a byte of a value or of a key.
#pragma once

#include <expected>
#include <string>

#include "base/result.h"

namespace capgate::store {

struct Problem {
  // What a caller can rely on; main.cc makes an exit code of it.
  enum class Kind : unsigned char { internal, usage, unavailable, damaged };
  Kind kind = Kind::internal;
  std::string message;
  std::string help;
};

template <typename T>
using Outcome = std::expected<T, Problem>;

[[nodiscard]] inline std::unexpected<Problem> unavailable(std::string message, std::string help) {
  return std::unexpected(Problem{Problem::Kind::unavailable, std::move(message), std::move(help)});
}

[[nodiscard]] inline std::unexpected<Problem> damaged(std::string message) {
  return std::unexpected(
      Problem{Problem::Kind::damaged, std::move(message),
              "nothing was written: put a copy of the file in its place, or move it away and set "
              "its secrets again"});
}

}  // namespace capgate::store
