#include "support/source_directory.h"

namespace capgate::support {

std::string_view source_directory() { return CAPGATE_SOURCE_DIR; }

}  // namespace capgate::support
