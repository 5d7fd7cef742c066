// Any bytes at all: parse_capability gives values that print to a fixpoint, or a place in the text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "core/grammar.h"
#include "core/scope.h"
#include "fuzz/mistakes.h"

namespace {

using namespace capgate;

void check_capability(const core::Capability& capability) {
  const std::string printed = core::print(capability);
  const auto again = core::parse_capability(printed, {});
  CAPGATE_ASSERT(again.has_value() && again->size() == 1);
  CAPGATE_ASSERT(again->front() == capability);
  CAPGATE_ASSERT(core::print(again->front()) == printed);
  if (const auto allowed = core::check_scope(capability, "/data/home"); !allowed) {
    CAPGATE_ASSERT(!allowed.error().message.empty() && !allowed.error().help.empty());
  }
}

}  // namespace

// The first line is the capability; what follows it is the value of ${A}.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = input.find('\n');
  const std::string text(input.substr(0, line));
  core::Bindings bindings = {{.name = "A", .values = {"/a", "x"}}};
  if (line != std::string_view::npos) bindings[0].values = {std::string(input.substr(line + 1))};

  const auto parsed = core::parse_capability(text, bindings);
  if (!parsed) {
    fuzz::check_mistake(parsed.error(), text);
    return 0;
  }
  CAPGATE_ASSERT(!parsed->empty());
  for (const core::Capability& capability : *parsed) check_capability(capability);
  return 0;
}
