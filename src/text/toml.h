// TOML 1.0, read strictly and into the same Document as JSON and YAML.
//
//   const Checked<Document> document = parse_toml(std::move(text));
//
// Tables stand in the tree in the order in which they are first named, wherever their lines are.
// Where a node stands: a value at its token, a table at its header or, without one, at the key that
// made it; a key of a value at all of its dotted parts, `a.b.c`, though its text is the last one.
// Numbers, dates and times are of kind number, and keep the text that they were written with.
// Refused with the place of the mistake: what parse_json refuses and what TOML does. A text without
// any key is an empty table.
#pragma once

#include <string>

#include "base/result.h"
#include "text/document.h"

namespace capgate::text {

[[nodiscard]] Checked<Document> parse_toml(SharedText source);
[[nodiscard]] inline Checked<Document> parse_toml(std::string source) {
  return parse_toml(share(std::move(source)));
}

}  // namespace capgate::text
