// A schema as a value: written down once, with the words of draft 2020-12, and printed for either
// draft.
//
//   object({{"type", "string"}, {"pattern", "^[a-z]+$"}})
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "review/schema.h"

namespace capgate::review {

struct SchemaMember;

// JSON. Members keep the order in which they were written.
struct SchemaValue {
  using List = std::vector<SchemaValue>;
  using Object = std::vector<SchemaMember>;

  // Implicit, so that a description reads like JSON.
  SchemaValue(const char* text);
  SchemaValue(std::string_view text);
  SchemaValue(std::string text);
  SchemaValue(bool truth);
  SchemaValue(int number);
  SchemaValue(List list);
  SchemaValue(Object object);

  std::variant<bool, std::uint64_t, std::string, List, Object> value;
};

struct SchemaMember {
  std::string key;
  SchemaValue value;
};

[[nodiscard]] SchemaValue object(std::initializer_list<SchemaMember> members);
[[nodiscard]] SchemaValue list(std::initializer_list<SchemaValue> items);
[[nodiscard]] SchemaValue refer(std::string_view definition);  // {"$ref": "#/$defs/..."}

// No string that matches the pattern. Editors show the message of a pattern that fails, but not all
// of them that of `not`; so this says that such a string would have to be empty.
[[nodiscard]] SchemaValue refuse(std::string_view pattern, std::string_view message);

// Pretty JSON with a line feed at the end.
[[nodiscard]] std::string print(const SchemaValue& schema, Draft draft);

}  // namespace capgate::review
