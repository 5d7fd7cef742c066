// A document of either syntax: by its name where that says it, else by its first character.
//
//   const Checked<Document> document = parse_json_or_yaml("github.yaml", share(std::move(text)));
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/document.h"

namespace capgate::text {

[[nodiscard]] Checked<Document> parse_json_or_yaml(std::string_view name, const SharedText& text);

}  // namespace capgate::text
