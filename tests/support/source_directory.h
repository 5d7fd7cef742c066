// Where the repository is: tests read their cases from it.
#pragma once

#include <string_view>

namespace capgate::support {

[[nodiscard]] std::string_view source_directory();

}  // namespace capgate::support
