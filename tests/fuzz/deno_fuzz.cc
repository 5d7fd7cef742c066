// Any bytes at all: import/deno.h makes a manifest of them that parses, or says what is wrong
// where.
#include "fuzz/import_case.h"
#include "import/deno.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return capgate::fuzz::import_document(data, size, capgate::imports::is_deno,
                                        capgate::imports::read_deno);
}
