// The texts in a JSON schema, or in any other JSON of a server: a model reads them as it reads a
// description, so a person has to see them, too.
//
//   schema_texts(R"({"properties":{"q":{"type":"string","description":"Words."}}})", "  ")
//     ->   properties.q.description: "Words."
#pragma once

#include <string>
#include <string_view>

namespace capgate::clients {

// One line for each text, with where it stands: every string but the name of a type and the like,
// every key that is no plain word, and the name of every property. Escaped, quoted as JSON, so that
// no text looks like another one's place. Long ones and too many are cut, which is said.
[[nodiscard]] std::string schema_texts(std::string_view json, std::string_view indent);

}  // namespace capgate::clients
