// compile --output DIR: the files of an artifact, each written whole or not at all.
#pragma once

#include <string>

#include "lower/artifact.h"
#include "sys/error.h"

namespace capgate::cli {

// Makes the directory, and replaces files of the same names in it: compiling again gives the new
// artifact. Never writes through a link.
[[nodiscard]] sys::Sys<void> write_files(const lower::Artifact& artifact,
                                         const std::string& directory);

}  // namespace capgate::cli
