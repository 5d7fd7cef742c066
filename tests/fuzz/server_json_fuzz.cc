// Any bytes at all as an entry of the registry: see import_format.h.
#include "fuzz/import_format.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return capgate::fuzz::read_as("server-json", data, size);
}
