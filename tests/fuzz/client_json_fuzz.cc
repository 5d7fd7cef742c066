// Any bytes at all as a client's JSON: wrapping it can be undone.
#include "fuzz/client_file.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using capgate::fuzz::Refusal;
  const std::string text(reinterpret_cast<const char*>(data), size);
  // All at the root: the fuzzer need not find the names of keys.
  capgate::fuzz::check_file(text, {.paths = {{}}}, Refusal::never);
  capgate::fuzz::check_file(text, {.paths = {{"mcpServers"}, {"projects", "*", "mcpServers"}}},
                            Refusal::never);
  return 0;
}
