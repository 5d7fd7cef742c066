// Any bytes at all as a foreign format: a manifest that parses and says nothing that is not
// canonical, or mistakes that stand in the text and can be printed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/text.h"
#include "core/manifest.h"
#include "fuzz/mistakes.h"
#include "import/formats.h"
#include "text/json.h"
#include "text/json_or_yaml.h"

namespace capgate::fuzz {

inline void check_imported(const imports::Imported& imported) {
  CAPGATE_ASSERT(std::ranges::is_sorted(imported.capabilities));
  for (const imports::Loss& loss : imported.losses) {
    CAPGATE_ASSERT(!loss.subject.empty() && !loss.message.empty());
  }
  const auto document = text::parse_json(print_manifest(imported));
  CAPGATE_ASSERT(document.has_value());
  core::Bindings bindings;
  for (const std::string& name : imported.variables) {
    bindings.push_back({.name = name, .values = {name == "HOME" ? "/home/me" : "/srv/bound"}});
  }
  // A variable may stand for a piece of a path: then its capability cannot be bound to a path.
  const auto manifest = imported.variables.empty() ? core::parse_manifest(*document, bindings)
                                                   : core::outline_manifest(*document);
  CAPGATE_ASSERT(manifest.has_value());
  CAPGATE_ASSERT(manifest->tools.size() == imported.tools.size());
}

inline int read_as(std::string_view name, const std::uint8_t* data, std::size_t size) {
  const imports::Format* format = imports::find_format(name);
  CAPGATE_ASSERT(format != nullptr);
  const text::SharedText text = text::share(std::string(reinterpret_cast<const char*>(data), size));
  const auto document = text::parse_json_or_yaml("fuzz", text);
  if (!document) return 0;
  (void)imports::detect_format(*document);
  const auto imported = format->read(
      *document, {.file = "fuzz", .directory = "/srv/project", .home = "/home/me", .server = ""});
  if (imported) {
    check_imported(*imported);
  } else {
    check_mistakes(imported.error(), *text);
  }
  return 0;
}

}  // namespace capgate::fuzz
