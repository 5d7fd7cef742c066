// What must hold for any importer and any bytes: what it returns prints to a manifest that parses,
// and each of its mistakes stands in the text and can be shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "core/manifest.h"
#include "fuzz/mistakes.h"
#include "import/imported.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::fuzz {

inline const imports::ImportPlace import_place{
    .file = "fuzz.json", .directory = "/srv/project", .home = "/home/me", .server = ""};

inline void check_manifest(const imports::Imported& imported) {
  CAPGATE_ASSERT(!imported.name.empty() && !imported.format.empty());
  const auto document = text::parse_json(imports::print_manifest(imported));
  CAPGATE_ASSERT(document.has_value());
  core::Bindings bindings;
  for (const std::string& name : imported.variables) {
    bindings.push_back({.name = name, .values = {"value"}});
  }
  const auto outlined = core::outline_manifest(*document);
  CAPGATE_ASSERT(outlined.has_value());
  // Without variables it is a whole manifest.
  if (imported.variables.empty()) {
    CAPGATE_ASSERT(core::parse_manifest(*document, bindings).has_value());
  }
  for (const imports::Loss& loss : imported.losses) {
    CAPGATE_ASSERT(!loss.subject.empty() && !loss.message.empty());
  }
}

inline void check_import(const Checked<imports::Imported>& read, std::string_view source) {
  if (read) return check_manifest(*read);
  CAPGATE_ASSERT(read.error().size() <= text::most_mistakes);
  check_mistakes(read.error(), source);
}

// The bytes as JSON with comments, or else as YAML; the format may be asked for by name, so it
// reads whatever the document is.
template <typename Fits, typename Read>
int import_document(const std::uint8_t* data, std::size_t size, Fits fits, Read read) {
  const text::SharedText text = text::share(std::string(reinterpret_cast<const char*>(data), size));
  auto document = text::parse_jsonc(text);
  if (!document) document = text::parse_yaml(text);
  if (!document) return 0;
  static_cast<void>(fits(*document));
  check_import(read(*document, import_place), *text);
  imports::ImportPlace named = import_place;
  named.server = "a";
  check_import(read(*document, named), *text);
  return 0;
}

}  // namespace capgate::fuzz
