// YAML, read as strictly as JSON and into the same Document.
//
//   const Checked<Document> document = parse_yaml(std::move(text));
//
// One document of mappings, sequences and scalars. Refused with the place of the mistake: what
// parse_json refuses, and anchors, aliases, tags, a second document, merge keys ("<<") and keys
// that are not plain text. Plain scalars are typed by the YAML 1.2 core schema: null, true, false
// and numbers; everything else is a string (so `no` and `1.2.3` are strings). The text of a boolean
// is `true` or `false` however it was written (True, FALSE), that of a number as it was written.
#pragma once

#include <string>

#include "base/result.h"
#include "text/document.h"

namespace capgate::text {

[[nodiscard]] Checked<Document> parse_yaml(SharedText source);
[[nodiscard]] inline Checked<Document> parse_yaml(std::string source) {
  return parse_yaml(share(std::move(source)));
}

}  // namespace capgate::text
