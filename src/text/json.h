// JSON (RFC 8259), read strictly and with positions.
//
//   const Checked<Document> document = parse_json(std::move(text));
//
// Refused with the place of the mistake: duplicate keys, invalid UTF-8, unpaired surrogates, a byte
// order mark, more than 128 levels, more than 16 MiB, bytes after the value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/document.h"

namespace capgate::text {

[[nodiscard]] Checked<Document> parse_json(SharedText source);
[[nodiscard]] inline Checked<Document> parse_json(std::string source) {
  return parse_json(share(std::move(source)));
}

// JSON as people write it into settings: with // and /* */ comments and a comma after the last
// item. A half of a surrogate pair reads as U+FFFD, and a text without any value as null;
// everything else is refused as above.
[[nodiscard]] Checked<Document> parse_jsonc(SharedText source);
[[nodiscard]] inline Checked<Document> parse_jsonc(std::string source) {
  return parse_jsonc(share(std::move(source)));
}

// What holds for the bytes of any document, JSON or YAML: size, encoding, no byte order mark.
[[nodiscard]] Result<void> check_bytes(std::string_view source);

// `raw` is a string token with its quotes: the offset in it of byte `index` of the decoded text.
[[nodiscard]] std::size_t json_string_offset(std::string_view raw, std::size_t index);

}  // namespace capgate::text
