// Any bytes at all: a spec becomes capabilities that are written as they are read and stand in the
// text, or gives mistakes that stand there and can be printed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/merge.h"
#include "fuzz/mistakes.h"
#include "import/egress_spec.h"
#include "text/yaml.h"

namespace {

using namespace capgate;

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const text::SharedText text = text::share(std::string(reinterpret_cast<const char*>(data), size));
  const auto document = text::parse_yaml(text);
  if (!document) return 0;
  const auto spec = imports::read_egress_spec(*document);
  if (!spec) {
    fuzz::check_mistakes(spec.error(), *text);
    return 0;
  }
  CAPGATE_ASSERT(imports::is_egress_spec(*document) && !spec->server.empty());
  for (const core::Declared& declared : spec->declared) {
    CAPGATE_ASSERT(fuzz::is_inside(declared.where, Span::at(0, text->size())));
    const auto again = core::parse_capability(print(declared.capability), {});
    CAPGATE_ASSERT(again && again->size() == 1 && again->front() == declared.capability);
  }
  const auto policy = core::merge(spec->manifest());
  if (!policy) fuzz::check_mistakes(policy.error(), *text);
  return 0;
}
