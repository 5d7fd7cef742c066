// Any bytes at all: pins are read and come back the same from their own print, or are refused with
// a reason; and what changed between any two of them can be shown on a terminal.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/text.h"
#include "clients/pin.h"
#include "clients/pin_diff.h"

namespace {

// Only what a terminal shows as it is.
bool is_plain(const std::string& text) {
  for (const std::string_view line : capgate::EachPart(text, '\n')) {
    if (capgate::escape_for_terminal(line) != line) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace capgate;
  const std::string text(reinterpret_cast<const char*>(data), size);
  CAPGATE_ASSERT(is_plain(clients::shown_text(text, "  ")));
  CAPGATE_ASSERT(is_plain(clients::text_diff(text.substr(0, size / 2), text.substr(size / 2), "")));
  if (const auto json = clients::canonical_json(text)) {
    CAPGATE_ASSERT(clients::canonical_json(*json) == json);
  }
  const auto pins = clients::parse_pins(text);
  if (!pins) {
    CAPGATE_ASSERT(!pins.error().empty());
    return 0;
  }
  const auto again = clients::parse_pins(clients::print_pins(*pins));
  CAPGATE_ASSERT(again.has_value() && *again == *pins);
  for (const clients::Pin& pin : *pins) {
    CAPGATE_ASSERT(diff(pin, pin).is_empty());
    CAPGATE_ASSERT(is_plain(print(diff(pins->front(), pin))));
    CAPGATE_ASSERT(diff(pins->front(), pin).is_empty() == diff(pin, pins->front()).is_empty());
  }
  return 0;
}
