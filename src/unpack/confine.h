// capgate-unpack gives everything up before it reads the first byte of a bundle: from then on it
// can read and write what is open already, ask for some memory, and end. No file, no socket, no
// process, no program.
#pragma once

#include <string>

namespace capgate::unpack {

// What failed, or empty. There is no half of it: whoever is not confined must not read.
[[nodiscard]] std::string confine();

}  // namespace capgate::unpack
