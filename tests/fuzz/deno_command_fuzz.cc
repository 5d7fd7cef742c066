// Any bytes at all as a command of Deno: a manifest that parses, or mistakes with their places.
#include <string_view>

#include "fuzz/import_case.h"
#include "import/deno.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(capgate::imports::is_deno_command(text));
  capgate::fuzz::check_import(
      capgate::imports::read_deno_command(text, capgate::fuzz::import_place), text);
  return 0;
}
