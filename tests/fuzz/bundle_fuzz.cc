// Any bytes at all as a bundle: a manifest of at most 1 MiB, or words that say why there is none.
// Nothing outside the file is ever asked for.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "unpack/zip.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace capgate;
  const auto read_at = [&](std::uint64_t offset, std::span<char> into) {
    CAPGATE_ASSERT(offset <= size && into.size() <= size - offset);
    if (!into.empty()) std::memcpy(into.data(), data + offset, into.size());
    return true;
  };
  const auto found = unpack::read_bundle_manifest(size, read_at);
  if (found) {
    CAPGATE_ASSERT(found->manifest.size() <= unpack::largest_manifest);
  } else {
    CAPGATE_ASSERT(!found.error().empty() && found.error().size() < 1000);
  }
  return 0;
}
