// A broken invariant is a bug in capgate, never a user's mistake: say where and stop at once.
//
//   CAPGATE_ASSERT(index < size);
#pragma once

namespace capgate {

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace capgate

#define CAPGATE_ASSERT(expression)     \
  ((expression) ? static_cast<void>(0) \
                : ::capgate::assertion_failed(#expression, __FILE__, __LINE__))
