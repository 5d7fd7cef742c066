// The one translation unit that holds fmt's implementation (Debian ships no static library of it).
#define FMT_HEADER_ONLY 1
#define FMT_STATIC_THOUSANDS_SEPARATOR ','
#include "base/format.h"

#include <fmt/format.h>

namespace capgate {

std::string vformat(fmt::string_view pattern, fmt::format_args args) {
  return fmt::vformat(pattern, args);
}

}  // namespace capgate
