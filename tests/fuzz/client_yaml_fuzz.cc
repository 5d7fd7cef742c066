// Any bytes at all as a client's YAML: wrapping it can be undone.
#include "fuzz/client_file.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using capgate::clients::Syntax;
  using capgate::fuzz::Refusal;
  const std::string text(reinterpret_cast<const char*>(data), size);
  // At the root, so that the fuzzer need not find the names of keys. YAML can be written in ways
  // that no edit keeps: those are refused.
  capgate::fuzz::check_file(text, {.syntax = Syntax::yaml, .paths = {{}}}, Refusal::allowed);
  capgate::fuzz::check_file(text,
                            {.syntax = Syntax::yaml, .paths = {{"extensions"}}, .command = "cmd"},
                            Refusal::allowed);
  return 0;
}
