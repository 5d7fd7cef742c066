// Any bytes at all: parse_json returns a sound tree or a diagnostic inside the source.
#include <cstddef>
#include <cstdint>

#include "fuzz/walk.h"
#include "text/json.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  capgate::fuzz::check(capgate::text::parse_json(source), source);
  return 0;
}
