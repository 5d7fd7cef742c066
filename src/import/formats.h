// The formats that `capgate import` reads, one line each.
//
//   const Format* format = TRY(detect_format(document));   // exactly one fits
//   const Imported imported = TRY(format->read(document, place));
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

struct Format {
  std::string_view name;         // as in --from
  std::string_view description;  // one line, for the help
  bool (*fits)(const text::Document& document);
  Checked<Imported> (*read)(const text::Document& document, const ImportPlace& place);
};

[[nodiscard]] std::span<const Format> formats();
[[nodiscard]] const Format* find_format(std::string_view name);

// The one format that fits. None or several is a mistake, and --from decides; something of ours, or
// a client's own configuration, is told which command is for it.
[[nodiscard]] Result<const Format*> detect_format(const text::Document& document);

}  // namespace capgate::imports
