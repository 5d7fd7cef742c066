// Any bytes at all: what is found in git's configuration is a short text that can be shown. Where
// nothing is found, a setting that runs a program is, wherever it stands at the end.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/text.h"
#include "sandbox/git_config.h"

namespace {

using namespace capgate;

void check_that_a_program_is_found(std::string text) {
  for (const std::string_view more :
       {"\n[core]\nfsmonitor = x\n", "\n[Core] PAGER = x", "\n[alias]\nx = \\\n!y\n"}) {
    CAPGATE_ASSERT(sandbox::foreign_git_setting(text + std::string(more)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto found = sandbox::foreign_git_setting(text);
  if (!found) {
    check_that_a_program_is_found(text);
    return 0;
  }
  CAPGATE_ASSERT(!found->empty());
  CAPGATE_ASSERT(escape_for_terminal(*found) == *found);
  return 0;
}
