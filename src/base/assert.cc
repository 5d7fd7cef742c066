#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace capgate {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "capgate: internal error: %s:%d: %s\n", file, line, expression);
  std::abort();
}

}  // namespace capgate
