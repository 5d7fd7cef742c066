#include "sys/error.h"

#include <cstring>

namespace capgate::sys {

std::string reason(const SysError& error) { return std::strerror(error.err); }

}  // namespace capgate::sys
